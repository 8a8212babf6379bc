"""Lower rooms never import higher ones."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "trainwarden"
GROUND = ("errors", "files", "guard", "hookspecs", "interpreter", "plugins")
ROOMS = ("records", "metrics", "evidence", "diagnosis", "procedure", "analysts", "faces")
PURE = ("records", "metrics", "diagnosis")
DOORS = {"socket", "subprocess", "urllib", "http", "psutil", "pynvml", "tempfile", "shutil"}


def height(module: str) -> int:
    """0 for the ground floor, 1 for records, and up."""
    parts = module.split(".")
    if parts[1:] == ["__main__"]:
        return 1 + len(ROOMS)
    if len(parts) < 2 or parts[1] in GROUND or parts[1].startswith("__"):
        return 0
    return 1 + ROOMS.index(parts[1])


def imports(path: Path) -> set[str]:
    """Every module that a file imports, also inside of functions, typing-only ones apart."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            typing_only |= set(ast.walk(node))
    found = set()
    for node in ast.walk(tree):
        if node in typing_only:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            found.add(node.module or "")
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


FILES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_file_imports_from_above(path: Path) -> None:
    own = height("trainwarden." + ".".join(path.relative_to(SOURCE).with_suffix("").parts))
    above = {
        name for name in imports(path) if name.startswith("trainwarden.") and height(name) > own
    }
    assert not above, f"{path.relative_to(SOURCE)} imports {sorted(above)}"


@pytest.mark.parametrize("room", PURE)
def test_pure_rooms_open_no_door(room: str) -> None:
    for path in (SOURCE / room).rglob("*.py"):
        used = {name.split(".")[0] for name in imports(path)} & DOORS
        assert not used, f"{path.relative_to(SOURCE)} imports {sorted(used)}"


def test_every_room_is_known() -> None:
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert rooms == {*ROOMS, "guard"}


def test_the_guard_needs_the_standard_library_alone() -> None:
    for path in (SOURCE / "guard").rglob("*.py"):
        for name in imports(path):
            top = name.split(".")[0]
            assert name.startswith("trainwarden.guard") or top in sys.stdlib_module_names, (
                f"{path.name} imports {name}"
            )
