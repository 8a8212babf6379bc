"""Config files to plain data: YAML, JSON, TOML and Python, none of it ever executed."""

from __future__ import annotations

import importlib
import json
import re
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from trainwarden.records.hostile import clean

MAX_BYTES = 4 * 1024 * 1024
MAX_NODES = 200_000
"""Values a YAML file may hold once its aliases are written out."""
MAX_DEPTH = 64
MAX_BASES = 16
"""Files that one may build on, directly or not."""


class ConfigError(ValueError):
    """A config that cannot be read: says what is wrong, where, and what to do about it."""


def load_config(path: Path) -> dict[str, Any]:
    """Read a training config as plain data, keys as written, over those that it builds on.

    The suffix decides the format; a file with another suffix is tried as each. Files named under
    `_base_` (mmengine, detectron2) are read first, where they can be. Raises ConfigError, and
    nothing else, for whatever cannot be read as a mapping.
    """
    return _over_bases(path, _load(path), [path])


def _over_bases(path: Path, data: dict[str, Any], read: list[Path]) -> dict[str, Any]:
    named = data.get("_base_", data.get("_BASE_"))
    names = named if isinstance(named, list) else [named]
    merged: dict[str, Any] = {}
    for name in names[:MAX_BASES]:
        base = path.parent / name if isinstance(name, str) else path
        if base in read or len(read) > MAX_BASES:
            continue
        read.append(base)
        try:
            inner = _over_bases(base, _load(base), read)
        except ConfigError:
            # What it adds itself still counts.
            continue
        merged = _merged(merged, inner)
    return _merged(merged, data) if merged else data


def _merged(below: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(below)
    for key, value in over.items():
        before = result.get(key)
        nested = isinstance(before, dict) and isinstance(value, dict)
        replaces = not nested or value.get("_delete_") is True
        result[key] = value if replaces else _merged(before or {}, value)
    return result


def _load(path: Path) -> dict[str, Any]:
    text = _text(path)
    readers: dict[str, Callable[[str], dict[str, Any]]] = {
        "YAML": _from_yaml,
        "JSON": _from_json,
        "TOML": _from_toml,
        "Python": _from_python,
    }
    by_suffix = {
        ".yaml": ["YAML"],
        ".yml": ["YAML"],
        ".json": ["JSON"],
        ".jsonc": ["JSON"],
        ".toml": ["TOML"],
        ".py": ["Python"],
    }
    known = by_suffix.get(path.suffix.lower())
    reasons: list[str] = []
    for name in known or ["JSON", "TOML", "Python", "YAML"]:
        try:
            data = readers[name](text)
        except ConfigError as error:
            reasons.append(f"as {name}: {error}")
        except RecursionError:
            reasons.append(f"as {name}: nested too deeply")
        # The parsers leak IndexError, KeyError, OverflowError and others on odd input.
        except Exception as error:
            reasons.append(f"as {name}: {clean(str(error) or type(error).__name__, 200)}")
        else:
            if known or _looks_like_settings(data):
                return data
            reasons.append(f"as {name}: what it holds are no settings")
    raise ConfigError(
        f"{_shown(path)} cannot be read {reasons[0] if known else '; '.join(reasons)}. "
        "Name a training config in YAML, JSON, TOML or Python with --config, or leave it out."
    )


def load_model_config(model: str | None, root: Path | None = None) -> dict[str, Any]:
    """The `config.json` (or `params.json`) of a local model folder; empty where there is none."""
    if not model:
        return {}
    try:
        folder = Path(model).expanduser()
        folder = folder if folder.is_absolute() or root is None else root / folder
        for name in ("config.json", "params.json"):
            file = folder / name if folder.is_dir() else folder.parent / name
            if file.is_file():
                return load_config(file)
    except (ConfigError, OSError, RuntimeError, ValueError):
        pass
    return {}


def _shown(path: Path) -> str:
    return clean(str(path), 200)


def _text(path: Path) -> str:
    try:
        info = path.stat()
        if stat.S_ISDIR(info.st_mode):
            raise ConfigError(f"{_shown(path)} is a folder; name the config file in it.")
        if not stat.S_ISREG(info.st_mode):
            raise ConfigError(f"{_shown(path)} is not a regular file; name a config file.")
        if info.st_size > MAX_BYTES:
            raise ConfigError(
                f"{_shown(path)} has {info.st_size} bytes, more than the {MAX_BYTES} that a "
                "config may have; name the training config, not its data or a checkpoint."
            )
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, ConfigError):
            raise
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(
            f"{_shown(path)} cannot be read: {reason}. Check the path and its permissions."
        ) from error
    encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{_shown(path)} is not text (byte {error.start} is not {encoding}); a config is "
            "YAML, JSON, TOML or Python. Pickled arguments such as training_args.bin are not read."
        ) from error
    if "\0" in text:
        raise ConfigError(f"{_shown(path)} is binary; a config is YAML, JSON, TOML or Python.")
    if not text.strip():
        raise ConfigError(f"{_shown(path)} is empty; name the config the run was started with.")
    return text


def _looks_like_settings(data: Mapping[str, Any]) -> bool:
    return bool(data) and all(re.fullmatch(r"[\w.\-/]{1,100}", key) for key in data)


def _plain(value: Any, depth: int = 0) -> Any:
    """Only str, int, float, bool, None, lists and dicts with string keys."""
    if depth > MAX_DEPTH:
        raise ConfigError(f"nested more than {MAX_DEPTH} deep")
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item, depth + 1) for item in value]
    return str(value)


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        kind = "nothing" if value is None else f"a {type(value).__name__}"
        raise ConfigError(f"it holds {kind}, not settings with names")
    plain = _plain(value)
    assert isinstance(plain, dict)  # noqa: S101 - for the type checker
    return plain


_COMMENTS = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.S)
_LAST_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')


def _from_json(text: str) -> dict[str, Any]:
    try:
        return _mapping(json.loads(text))
    except json.JSONDecodeError as error:
        # Hand-written configs often have comments and trailing commas.
        relaxed = _COMMENTS.sub(lambda match: match[1] or "", text)
        relaxed = _LAST_COMMA.sub(lambda match: match[1] or "", relaxed)
        if relaxed == text:
            raise
        try:
            return _mapping(json.loads(relaxed))
        except json.JSONDecodeError:
            raise error from None


def _from_toml(text: str) -> dict[str, Any]:
    # The parser's time grows with the square of a dotted key's length.
    deep = re.search(rf"(?m)^[ \t\[]*[^.\n=#]+(?:\.[^.\n=#]+){{{MAX_DEPTH},}}", text)
    if deep:
        raise ConfigError(f"a key is nested more than {MAX_DEPTH} deep")
    parser = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    return _mapping(parser.loads(text))


def _from_python(text: str) -> dict[str, Any]:
    from trainwarden.evidence.config_python import read_python

    return _mapping(read_python(text))


def _from_yaml(text: str) -> dict[str, Any]:
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check_yaml(yaml.parse(text, Loader=base))

        class Loader(base):  # type: ignore[misc]
            """Safe, dates left as text, and unknown local tags read as the data they mark."""

        Loader.yaml_implicit_resolvers = {
            first: [entry for entry in entries if entry[0] != "tag:yaml.org,2002:timestamp"]
            for first, entries in base.yaml_implicit_resolvers.items()
        }
        Loader.add_multi_constructor("!", _untagged)
        documents = [doc for doc in yaml.load_all(text, Loader=Loader) if doc is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" in line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{clean(error.problem or str(error), 150)}{where}") from error
    if len(documents) == 1:
        return _mapping(documents[0])
    merged: dict[str, Any] = {}
    for document in documents:
        merged.update(_mapping(document))
    return _mapping(merged or None)


def _untagged(loader: Any, _suffix: str, node: Any) -> Any:
    if node.id == "mapping":
        return loader.construct_mapping(node, deep=True)
    if node.id == "sequence":
        return loader.construct_sequence(node, deep=True)
    return loader.construct_scalar(node)


def _check_yaml(events: Iterator[Any]) -> None:
    """Refuse what would run code or grow without bound, before anything is built.

    Aliases are counted with the size of what they stand for, so that a few lines that expand to
    billions of values (also through merge keys) are seen from the events alone.
    """
    sizes: dict[str, int] = {}
    open_nodes: list[tuple[str | None, int]] = []
    total = 0
    for event in events:
        kind = type(event).__name__
        tag = getattr(event, "tag", None) or ""
        if "python" in tag.lower():
            raise ConfigError(
                f"line {event.start_mark.line + 1} has the tag {clean(tag, 80)}, which would run "
                "code; it is never followed, take the tag out"
            )
        if kind == "DocumentStartEvent":
            sizes.clear()
        if kind == "AliasEvent":
            if event.anchor not in sizes:
                raise ConfigError(
                    f"line {event.start_mark.line + 1} has an alias to something unknown or to "
                    "what it stands in"
                )
            total += sizes[event.anchor]
        elif kind in ("ScalarEvent", "MappingStartEvent", "SequenceStartEvent"):
            total += 1
            if kind == "ScalarEvent":
                if event.anchor:
                    sizes[event.anchor] = 1
            else:
                open_nodes.append((event.anchor, total))
                if event.anchor:
                    sizes.pop(event.anchor, None)
                if len(open_nodes) > MAX_DEPTH:
                    raise ConfigError(f"nested more than {MAX_DEPTH} deep")
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            anchor, before = open_nodes.pop()
            if anchor:
                sizes[anchor] = total - before + 1
        if total > MAX_NODES:
            raise ConfigError(f"it expands to more than {MAX_NODES} values")
