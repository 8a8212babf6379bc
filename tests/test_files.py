from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from trainwarden.errors import Trouble
from trainwarden.files import write_atomically


def test_replaces_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    write_atomically(path, "old")
    write_atomically(path, "new ✓")
    assert path.read_text(encoding="utf-8") == "new ✓"
    assert [entry.name for entry in tmp_path.iterdir()] == ["state.json"]


def test_a_full_disk_in_the_middle_of_a_write_keeps_the_old_file(tmp_path: Path) -> None:
    """The kernel refuses bytes beyond a limit, in a process of its own, as a full disk would."""
    path = tmp_path / "state.json"
    write_atomically(path, "old")
    code = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from trainwarden.errors import Trouble\n"
        "from trainwarden.files import write_atomically\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try:\n    write_atomically(Path(sys.argv[1]), 'x' * 100_000)\n"
        "except Trouble as trouble:\n    print(trouble)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert "cannot write" in done.stdout, done.stderr
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["state.json"]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 4096


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    with pytest.raises(Trouble, match="no permission"):
        write_atomically(folder / "state.json", "x")


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(Trouble, match="cannot write"):
        write_atomically(tmp_path / "gone" / "state.json", "x")
