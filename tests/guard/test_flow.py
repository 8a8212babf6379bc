"""What stands before a command: reserved words, the head of a loop, settings for it alone."""

from __future__ import annotations

import pytest

from trainwarden.guard.flow import bare
from trainwarden.guard.shell import parse


@pytest.mark.parametrize(
    ("command", "left"),
    [
        ("cat x", ["cat", "x"]), ("until cat x", ["cat", "x"]), ("if ! cat x", ["cat", "x"]),
        ("do", []), ("done", []), ("done x", ["done", "x"]), ("fi", []),
        ("for f in a b", []), ("for f in", ["for", "f", "in"]), ("for PATH in a b", None),
        ("for path in a b", None), ("'until' cat x", None), ("LC_ALL=C cat x", ["cat", "x"]),
        ("do TZ=UTC date", ["date"]), ("TZ=UTC do date", ["do", "date"]), ("LC_ALL=C", None),
        ("PATH=x cat x", None), ("PAGER=less git log", None), ("PAGER=cat git log", ["git", "log"]),
        ("LC_ALL='C' cat x", None),
    ],
)  # fmt: skip
def test_what_is_taken_off(command: str, left: list[str] | None) -> None:
    one = parse(command)[0]
    found = bare(one)
    assert found.argv == (one.argv if left is None else left)
    assert (found is one) is (found.argv == one.argv)
