"""Finding a run's config where none was named."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from trainwarden.evidence.config_facts import recognise
from trainwarden.evidence.config_files import ConfigError, load_config

_NOT_CONFIGS = re.compile(
    r"(?i)^(package(-lock)?|pyproject|tokenizer.*|special_tokens.*|trainer_state|generation_config|"
    r"docker-compose.*|mkdocs|environment|\.pre-commit.*|vocab|added_tokens|index|model\.safetensors.*|"
    r"tsconfig|setup|conftest|metrics?|results?|all_results|train_results|eval_results|hydra|overrides)$"
)
_FOLDERS = ("", "config", "configs", "conf", ".hydra")
_MOST = 64


def find_near(root: Path, log: Path | None = None) -> Path | None:
    """The most plausible training config near a log or a root folder; None if that isn't clear.

    Looked at are the log's folder, its parent and the root with their config folders, nearest
    first. A file counts by the facts of a run that it fixes: at least two of length, learning
    rate and batch size; two files of one place that fix equally many are not clear.
    """
    places = [log.parent, log.parent.parent, root] if log else [root]
    seen: set[Path] = set()
    for place in places:
        best: list[tuple[int, Path]] = []
        for file in _candidates(place):
            if file in seen or len(seen) >= _MOST:
                continue
            seen.add(file)
            try:
                facts = recognise(load_config(file), {})
            except ConfigError:
                continue
            core = {
                "length": facts.max_steps or facts.epochs,
                "rate": facts.learning_rate,
                "batch": facts.batch_size,
            }
            if sum(value is not None for value in core.values()) >= 2:
                best.append((len(facts.keys), file))
        best.sort(key=lambda entry: -entry[0])
        if best and (len(best) == 1 or best[0][0] > best[1][0]):
            return best[0][1]
        if best:
            return None
    return None


def _candidates(place: Path) -> Iterator[Path]:
    for name in _FOLDERS:
        try:
            files = sorted((place / name if name else place).iterdir())
        except OSError:
            continue
        for file in files[:2000]:
            suffix = file.suffix.lower()
            wanted = suffix in {".yaml", ".yml", ".json", ".toml"} or (
                suffix == ".py" and re.search(r"(?i)conf|cfg|args", file.stem)
            )
            if not wanted or _NOT_CONFIGS.match(file.stem):
                continue
            try:
                small = file.is_file() and file.stat().st_size <= 256 * 1024
            except OSError:
                continue
            if small:
                yield file
