"""Settings in Python source, read from its syntax tree: nothing is imported or executed."""

from __future__ import annotations

import ast
import io
import math
import operator
import re
import sys
import tokenize
from collections.abc import Callable, Iterable
from typing import Any

MAX_SOURCE = 1024 * 1024
_MISSING: Any = object()
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
# Containers whose keyword arguments are the settings themselves rather than one setting's value.
_FIELD_CALLS = {"field", "Field", "Argument", "Option"}


def read_python(source: str) -> dict[str, Any]:
    """Settings that a Python source fixes by literals; whatever is computed is left out.

    Read are assignments of the module (`lr = 6e-4`, `batch = 5 * 8`, `cfg.train.lr = 1e-3`,
    `cfg["lr"] = 1e-3`), `dict(...)` and other calls with keyword arguments as nested settings,
    defaults of class fields, and, where nothing else sets them, defaults of `add_argument` and
    the settings objects built inside functions. Raises SyntaxError, ValueError, RecursionError
    or MemoryError for what is no Python.
    """
    if len(source) > MAX_SOURCE:
        raise ValueError(f"more than {MAX_SOURCE} characters of Python")
    if sys.version_info < (3, 11):
        _check_depth(source)
    tree = ast.parse(source)
    settings: dict[str, Any] = {}
    _read_body(tree.body, settings, top=True)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            _read_argument(node, settings)
    if not settings:
        raise ValueError("no settings with literal values in it")
    return settings


def _check_depth(source: str) -> None:
    """Refuse expressions so deep that the parser of Python 3.10 overflows the stack.

    Counted are the tokens since the last comma or line end, over all open brackets: no
    expression nests deeper than that.
    """
    levels = [0]
    elifs = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NEWLINE or token.string in (",", ";"):
            levels[-1] = 0
        elif token.type == tokenize.STRING:
            if "f" in token.string[:2].lower():
                levels[-1] += len(re.findall(r"[^\w\s]", token.string))
        elif token.type in (tokenize.OP, tokenize.NAME, tokenize.NUMBER):
            levels[-1] += 1
            elifs += token.string == "elif"
            if token.string in ("(", "[", "{"):
                levels.append(0)
            elif token.string in (")", "]", "}") and len(levels) > 1:
                levels.pop()
        if elifs > 1000 or sum(levels) > 3000:
            raise ValueError(f"line {token.start[0]} is nested too deeply")


def _read_body(body: Iterable[ast.stmt], settings: dict[str, Any], *, top: bool) -> None:
    for statement in body:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                _assign(target, statement.value, settings, top=top)
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            _assign(statement.target, statement.value, settings, top=top)
        elif isinstance(statement, ast.ClassDef):
            fields: dict[str, Any] = {}
            _read_body(statement.body, fields, top=True)
            if fields:
                settings[statement.name] = fields
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            # Plain locals of a function are no settings; objects built there are.
            inner: dict[str, Any] = {}
            _read_body(statement.body, inner, top=False)
            for key, value in inner.items():
                settings.setdefault(key, value)
        elif isinstance(statement, ast.If) and "__name__" in {
            node.id for node in ast.walk(statement.test) if isinstance(node, ast.Name)
        }:
            _read_body(statement.body, settings, top=top)


def _assign(target: ast.expr, value: ast.expr, settings: dict[str, Any], *, top: bool) -> None:
    if isinstance(target, (ast.Tuple, ast.List)):
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
            for one, item in zip(target.elts, value.elts, strict=True):
                _assign(one, item, settings, top=top)
        return
    read = _literal(value, settings)
    path = _path(target)
    if not path or path[0].startswith("__"):
        return
    if not top and len(path) == 1 and not isinstance(read, dict):
        return
    if read is _MISSING:
        # What is computed later on must not leave an earlier literal standing as if it held.
        if top and len(path) == 1:
            settings.pop(path[0], None)
        return
    place = settings
    for part in path[:-1]:
        inner = place.setdefault(part, {})
        if not isinstance(inner, dict):
            inner = place[part] = {}
        place = inner
    place[path[-1]] = read


def _path(target: ast.expr) -> list[str]:
    """`cfg.train["lr"]` as its parts; empty for anything that is not so addressed."""
    parts: list[str] = []
    node: ast.expr = target
    while True:
        if isinstance(node, ast.Name):
            return [node.id, *reversed(parts)]
        if isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            if not isinstance(node.slice.value, str):
                return []
            parts.append(node.slice.value)
            node = node.value
        else:
            return []


def _literal(node: ast.expr, names: dict[str, Any]) -> Any:
    """The value a literal stands for, with the four operations on numbers; else `_MISSING`."""
    if isinstance(node, ast.Constant):
        return node.value if _is_plain(node.value) else _MISSING
    if isinstance(node, ast.Name):
        value = names.get(node.id, _MISSING)
        return value if not isinstance(value, (dict, list)) else _MISSING
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = _literal(node.operand, names)
        if not _is_number(value):
            return _MISSING
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp):
        return _fold(node, names)
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        items = [_literal(item, names) for item in node.elts]
        return [item for item in items if item is not _MISSING]
    if isinstance(node, ast.Dict):
        pairs = (
            (key.value, _literal(value, names))
            for key, value in zip(node.keys, node.values, strict=True)
            if isinstance(key, ast.Constant)
        )
        return {str(key): value for key, value in pairs if value is not _MISSING}
    if isinstance(node, ast.Call):
        return _call(node, names)
    return _MISSING


def _call(node: ast.Call, names: dict[str, Any]) -> Any:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    name = node.func.id if isinstance(node.func, ast.Name) else name
    keywords = {
        keyword.arg: value
        for keyword in node.keywords
        if keyword.arg and (value := _literal(keyword.value, names)) is not _MISSING
    }
    if name in _FIELD_CALLS:
        first = _literal(node.args[0], names) if node.args else _MISSING
        return keywords.get("default", first)
    if name in {"int", "float", "str", "Path"} and len(node.args) == 1 and not node.keywords:
        value = _literal(node.args[0], names)
        return value if isinstance(value, (str, int, float)) else _MISSING
    if keywords or (name in {"dict", "ConfigDict", "AttrDict", "EasyDict", "edict"}):
        first = _literal(node.args[0], names) if len(node.args) == 1 else None
        return {**first, **keywords} if isinstance(first, dict) else keywords
    return _MISSING


def _fold(node: ast.BinOp, names: dict[str, Any]) -> Any:
    left, right = _literal(node.left, names), _literal(node.right, names)
    if not _is_number(left) or not _is_number(right):
        return _MISSING
    try:
        if isinstance(node.op, ast.Pow):
            value = math.pow(left, right)
            exact = isinstance(left, int) and isinstance(right, int) and right >= 0
            value = int(value) if exact and value < 2**53 else value
        elif type(node.op) in _ARITHMETIC:
            value = _ARITHMETIC[type(node.op)](left, right)
        else:
            return _MISSING
    except (ArithmeticError, ValueError):
        return _MISSING
    return value if abs(value) < 1e18 else _MISSING


def _read_argument(node: ast.Call, settings: dict[str, Any]) -> None:
    """The default of `parser.add_argument("--lr", default=1e-3)`, unless something sets it."""
    if not (isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument"):
        return
    names = [
        arg.value
        for arg in node.args
        if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
    ]
    name = next((name for name in names if name.startswith("--")), None)
    default = next((kw.value for kw in node.keywords if kw.arg == "default"), None)
    if name is None or default is None:
        return
    value = _literal(default, {})
    if value is not _MISSING and value is not None:
        settings.setdefault(name.lstrip("-").replace("-", "_"), value)


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, (str, bool, int, float))


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
