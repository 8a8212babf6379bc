"""JSON by the interpreter's own scanner: importing `json` costs half an interpreter start."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` costs more than the interpreter's start
    from typing import Any

try:
    from _json import encode_basestring_ascii, make_scanner
except ImportError:  # another interpreter than CPython
    encode_basestring_ascii = make_scanner = None  # type: ignore[assignment,misc]

_CONSTANTS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


class _Rules:
    """What the scanner asks of a decoder."""

    strict = False
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = _CONSTANTS.__getitem__
    memo: dict[str, str] = {}  # noqa: RUF012


def loads(text: str) -> Any:
    """A JSON text as data. Raises ValueError where it is none."""
    if make_scanner is None:
        import json

        return json.loads(text)
    start = len(text) - len(text.lstrip(" \t\r\n"))
    try:
        data, end = make_scanner(_Rules)(text, start)  # type: ignore[arg-type]
    except (StopIteration, SystemError):  # the latter where `json`'s own error is not imported
        raise ValueError("no JSON value") from None
    if text[end:].strip(" \t\r\n"):
        raise ValueError("more than one JSON value")
    return data


def dumps(data: Any) -> str:
    """Data as one line of JSON; only what JSON knows. Raises TypeError."""
    if encode_basestring_ascii is None:
        import json

        return json.dumps(data)
    if isinstance(data, str):
        return str(encode_basestring_ascii(data))
    if data is None or data is True or data is False:
        return {None: "null", True: "true", False: "false"}[data]
    if isinstance(data, (int, float)):
        return repr(data)
    if isinstance(data, dict):
        return "{" + ",".join(f"{dumps(str(key))}:{dumps(data[key])}" for key in data) + "}"
    if isinstance(data, (list, tuple)):
        return "[" + ",".join(dumps(item) for item in data) + "]"
    raise TypeError(f"no JSON for {type(data).__name__}")
