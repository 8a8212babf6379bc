"""A guard that crashes, hangs or is missing: no gate says guarded, and nobody is stuck."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.claude import ROOT, Client, front_matter, plugin_copy
from support.model import Script, bash, call, say
from support.watcher import Watcher, leave
from trainwarden.guard import record


def crash(plugin: Path) -> None:
    (plugin / "src/trainwarden/guard/tools.py").write_text(
        "raise RuntimeError('broken on purpose')\n"
    )


def syntax(plugin: Path) -> None:
    (plugin / "src/trainwarden/guard/main.py").write_text("def main(:\n")


def missing(plugin: Path) -> None:
    (plugin / "src/trainwarden/guard/hook.py").unlink()


def no_hooks(plugin: Path) -> None:
    (plugin / "hooks/hooks.json").unlink()


def hang(plugin: Path) -> None:
    path = plugin / "src/trainwarden/guard/tools.py"
    path.write_text(path.read_text() + "\nimport time\ntime.sleep(60)\n")
    main = plugin / "src/trainwarden/guard/main.py"
    patient = main.read_text()
    assert "SECONDS = 5.0" in patient
    main.write_text(patient.replace("SECONDS = 5.0", "SECONDS = 0.3"))


def never_comes(plugin: Path) -> None:
    (plugin / "src/trainwarden/guard/hook.py").write_text("import time\ntime.sleep(60)\n")
    hooks = plugin / "hooks/hooks.json"
    hooks.write_text(hooks.read_text().replace('"timeout": 10', '"timeout": 1'))


@pytest.mark.parametrize("change", [syntax, missing, no_hooks, never_comes])
def test_a_guard_that_cannot_start_lets_all_pass_and_seals_say_so(
    client: Client, watcher: Watcher, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    client.plugin = plugin_copy(tmp_path, change)

    def main() -> Script:
        yield from watcher.begin()
        yield from watcher.seal("predict")
        if change is missing:
            yield from watcher.seal("collect", "compare", "assess", "resources")
            asked = yield bash("trainwarden review --builtin")
            assert not asked.result.failed, asked.result.text
        yield leave()

    run = client.run("/trainwarden:monitor train.log", main())
    assert run.code == 0, run.errors
    gates = sorted(watcher.folder.glob("[1-9]-*.md"))
    assert len(gates) == (6 if change is missing else 1)
    for gate in gates:
        assert front_matter(gate)["guarded"] is False
    assert "Not guarded: " in gates[0].read_text(), "gate 1 says why"


@pytest.mark.parametrize("change", [crash, hang])
def test_a_guard_that_fails_inside_refuses_before_gate_1_only(
    client: Client, watcher: Watcher, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    client.plugin = plugin_copy(tmp_path, change)
    log = str(watcher.project / "train.log")

    def main() -> Script:
        yield bash("trainwarden begin --log train.log --config config.yaml")
        asked = yield call("Read", file_path=log)
        assert asked.result.failed
        assert "trainwarden abandon" in asked.result.text, asked.result.text
        asked = yield bash("trainwarden abandon --why 'the guard is broken'")
        assert not asked.result.failed, asked.result.text
        yield say("Given up.")

    run = client.run("/trainwarden:monitor train.log", main())
    assert run.code == 0, run.errors
    assert record.open_names(str(watcher.project)) == []
    events = [e["event"] for e in record.events(str(watcher.project), run.session)]
    assert "failed" in events


def test_a_guard_that_breaks_after_gate_1_lets_pass_and_the_seal_says_so(
    client: Client, watcher: Watcher, tmp_path: Path
) -> None:
    client.plugin = plugin_copy(tmp_path)

    def main() -> Script:
        yield from watcher.begin()
        yield from watcher.seal("predict")
        crash(client.plugin)
        asked = yield bash("tail -n 1 train.log")
        assert not asked.result.failed, asked.result.text
        yield from watcher.seal("collect")
        yield leave()

    client.run("/trainwarden:monitor train.log", main())
    assert front_matter(watcher.folder / "1-predict.md")["guarded"] is True
    assert front_matter(watcher.folder / "2-collect.md")["guarded"] is False


def test_no_python_for_the_guard(client: Client, watcher: Watcher, tmp_path: Path) -> None:
    """`python3` is not on the client's PATH; the runtime is there all the same."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in ("bash", "sh", "cat", "tail", "env", "ls", "mkdir"):
        found = next(p for p in ("/usr/bin", "/bin") if (Path(p) / name).exists())
        (folder / name).symlink_to(Path(found) / name)
    (folder / "trainwarden").symlink_to(ROOT / ".venv/bin/trainwarden")
    client.path = [str(folder)]

    def main() -> Script:
        yield from watcher.begin()
        yield from watcher.seal("predict", "collect")
        yield leave()

    run = client.run("/trainwarden:monitor train.log", main())
    assert run.code == 0, run.errors
    for name in ("1-predict.md", "2-collect.md"):
        assert front_matter(watcher.folder / name)["guarded"] is False
