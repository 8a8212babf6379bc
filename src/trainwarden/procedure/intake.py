"""What an analyst or a reviewer hands in, as data and as records."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from trainwarden.errors import Refusal
from trainwarden.records.hostile import clean

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

Model = TypeVar("Model", bound="BaseModel")
_PLAINLY = {"missing": "is missing", "extra_forbidden": "no such field (see --help)"}


def data_in(text: str) -> Any:
    """JSON or YAML as plain data. Raises Refusal."""
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    return _yaml(text)


def _yaml(text: str) -> Any:
    import yaml

    class Loader(yaml.SafeLoader):
        """Without aliases: a few of them can stand for more than memory holds."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("aliases (*name) are not taken")
            return super().compose_node(parent, index)

    try:
        return yaml.load(text, Loader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        where = getattr(error, "problem_mark", None)
        line = f" in line {where.line + 1}" if where else ""
        reason = getattr(error, "problem", None) or clean(str(error)) or type(error).__name__
        hint = "; a text with a colon or quotes in it stands on its own lines after `>-`"
        scanned = isinstance(error, (yaml.scanner.ScannerError, yaml.parser.ParserError))
        raise Refusal(
            f"the input is neither YAML nor JSON{line}: {reason}{hint if scanned else ''}"
        ) from error


def parse(model: type[Model], data: Any, what: str) -> Model:
    """Validate input as a record. Raises Refusal naming each field that is off."""
    from pydantic import ValidationError

    if not isinstance(data, dict):
        raise Refusal(f"{what}: a mapping of fields is expected; --help has an example")
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise Refusal(
            f"{what}: not sealed, because\n{validation_lines(error)}\nMend this and send it again."
        ) from None


def validation_lines(error: ValidationError, prefix: str = "") -> str:
    """A validation error as one line a field, without echoing much of the input."""
    lines = []
    places = [item["loc"] for item in error.errors()]
    for item in error.errors()[:20]:
        place = item["loc"]
        # A list is only too short because its items are off, and those are told themselves.
        if item["type"] == "too_short" and any(
            other[: len(place)] == place for other in places if len(other) > len(place)
        ):
            continue
        where = ".".join(f"#{part + 1}" if isinstance(part, int) else part for part in place)
        said = _PLAINLY.get(item["type"]) or clean(item["msg"])
        lines.append(f"- {prefix}{where or 'the input'}: {said}")
    return "\n".join(lines)
