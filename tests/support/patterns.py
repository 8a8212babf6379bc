"""Regular expressions against texts made to take them long, found from the patterns themselves."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

try:
    from re import _constants as codes
    from re import _parser as parser
except ImportError:  # Python 3.10
    import sre_constants as codes
    import sre_parse as parser

SOURCE = Path(__file__).parents[2] / "src" / "trainwarden"
FEW = "1aA .-,_\t:|=[(/\xe2\x80"
"""Characters that classes are tried with."""
_SEARCHES = {"search", "finditer", "findall", "sub", "subn", "split"}
_REPEATS = {codes.MAX_REPEAT, codes.MIN_REPEAT}
Found = tuple[str, re.Pattern[str], bool]
"""Where a pattern stands, the pattern, and whether it is searched for, not only matched."""


def patterns(room: str) -> list[Found]:
    """The patterns of the modules of a room."""
    found = {}
    for path in sorted((SOURCE / room).rglob("*.py")):
        parts = ("trainwarden", *path.relative_to(SOURCE).with_suffix("").parts)
        name = ".".join(parts).removesuffix(".__init__")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        searched = _searched(tree)
        for own, value in vars(importlib.import_module(name)).items():
            for number, pattern in enumerate(_within(value)):
                if isinstance(pattern.pattern, str):
                    label = f"{room}/{path.stem}.{own}" + (f"[{number}]" if number else "")
                    deep = value is not pattern
                    found.setdefault(id(pattern), (label, pattern, deep or own in searched))
        for call, pattern in _inline(tree):
            label = f"{room}/{path.stem} line {call.lineno}"
            found[id(call)] = label, pattern, call.func.attr in _SEARCHES  # type: ignore[attr-defined]
    return list(found.values())


def _searched(tree: ast.Module) -> set[str]:
    """Names of which something is asked that looks from each place on, or that are passed on."""
    used = set()
    plain = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            plain.add(node.value)
            if node.attr in _SEARCHES:
                used.add(node.value.id)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in plain:
            used.add(node.id)
    return used


def _within(value: Any, depth: int = 0) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        yield from _within([*value.values()], depth)
    elif isinstance(value, list | tuple | frozenset | set) and depth < 4:
        for one in value:
            yield from _within(one, depth + 1)


def _inline(tree: ast.Module) -> Iterator[tuple[ast.Call, re.Pattern[str]]]:
    """Patterns that stand in calls of `re.match` and its like."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and node.func.attr in {*_SEARCHES, "match", "fullmatch"}
            and node.args
            and isinstance(node.args[0], ast.Constant)
            and isinstance(node.args[0].value, str)
        ):
            yield node, re.compile(node.args[0].value)


# Texts -----------------------------------------------------------------------------------------


def pumps(pattern: re.Pattern[str]) -> set[tuple[str, str]]:
    """For each repetition in a pattern: a text that leads to it, and what it may take again."""
    tree = parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)
    found = set(_pumps(tree, ""))
    return {(begin, unit) for begin, unit in found if unit}


def _pumps(sequence: Any, begin: str) -> Iterator[tuple[str, str]]:
    for code, argument in sequence:
        if code in _REPEATS or code is getattr(codes, "POSSESSIVE_REPEAT", None):
            _low, high, inner = argument
            if high > 100:
                for unit in _units(inner):
                    yield begin, unit
                    yield "", unit
            yield from _pumps(inner, begin)
        elif code is codes.SUBPATTERN:
            yield from _pumps(argument[-1], begin)
        elif code is codes.BRANCH:
            for one in argument[1]:
                yield from _pumps(one, begin)
        elif code in {codes.ASSERT, codes.ASSERT_NOT}:
            yield from _pumps(argument[1], begin)
        begin += _least([(code, argument)])


def _units(inner: Any) -> list[str]:
    """What a repetition may take once, in some ways."""
    if len(inner) == 1:
        code, argument = inner[0]
        if code is codes.SUBPATTERN:
            return _units(argument[-1])
        if code is codes.BRANCH:
            return [unit for one in argument[1] for unit in _units(one)]
        found = [sign for sign in FEW if _accepts(code, argument, sign)]
        if found:
            return found
    return [_least(inner)]


def _least(sequence: Any) -> str:
    """A short text that a part of a pattern matches, as far as it does not look around."""
    text = ""
    for code, argument in sequence:
        if code in _REPEATS or code is getattr(codes, "POSSESSIVE_REPEAT", None):
            text += _least(argument[2]) * argument[0]
        elif code is codes.SUBPATTERN:
            text += _least(argument[-1])
        elif code is getattr(codes, "ATOMIC_GROUP", None):
            text += _least(argument)
        elif code is codes.BRANCH:
            text += _least(argument[1][0])
        elif code in {codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN}:
            signs = [chr(argument)] if code is codes.LITERAL else [*FEW, "x", "%", '"', "'"]
            signs += [chr(at) for at in range(32, 256)]
            text += next((sign for sign in signs if _accepts(code, argument, sign)), "")
    return text


def _accepts(code: Any, argument: Any, sign: str) -> bool:
    if code is codes.LITERAL:
        return chr(argument) == sign
    if code is codes.NOT_LITERAL:
        return chr(argument) != sign
    if code is codes.ANY:
        return sign != "\n"
    if code is not codes.IN:
        return False
    taken, negated = False, False
    for kind, value in argument:
        if kind is codes.NEGATE:
            negated = True
        elif kind is codes.LITERAL:
            taken = taken or chr(value) == sign
        elif kind is codes.RANGE:
            taken = taken or value[0] <= ord(sign) <= value[1]
        elif kind is codes.CATEGORY:
            name = str(value).rpartition("_")[2]
            here = {"DIGIT": sign.isdigit(), "SPACE": sign.isspace()}.get(
                name, sign.isalnum() or sign == "_"
            )
            taken = taken or here != ("NOT_" in str(value))
    return taken != negated
