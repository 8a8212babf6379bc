"""`bin/trainwarden` of a plugin that was only copied into place."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from trainwarden import __version__, interpreter
from trainwarden.evidence.commands import is_excluded

ROOT = Path(__file__).parents[2]
VERSION = f"trainwarden, version {__version__}\n"
Launch = Callable[..., subprocess.CompletedProcess[str]]


def copied(folder: Path) -> Path:
    """What an installed plugin has of this tree, as far as the launcher is concerned."""
    for name in ("bin", "src"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def python(folder: Path, name: str, program: str) -> Path:
    """Put a program on a PATH of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(program)
    path.chmod(0o755)
    return path


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    return copied(tmp_path / "a plugin")


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A PATH with a shell's helpers and no Python."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in ("sh", "readlink", "head"):
        found = shutil.which(name)
        assert found
        (folder / name).symlink_to(found)
    return folder


@pytest.fixture
def launch(plugin: Path, tools: Path, tmp_path: Path) -> Launch:
    def run(
        *arguments: str, path: str = "", start: Path | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        variables = {
            "PATH": os.pathsep.join(filter(None, (path, str(tools)))),
            "HOME": str(tmp_path / "home"),
            "TRAINWARDEN_DATA": str(tmp_path / "data"),
            **environment,
        }
        return subprocess.run(
            [start or plugin / "bin/trainwarden", *arguments],
            env=variables,
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )

    return run


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """All dependencies as wheel files, and what has pip and uv take them and nothing else."""
    folder = tmp_path_factory.mktemp("wheels")
    fetched(folder, *interpreter.dependencies(ROOT))
    return {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(folder),
        "PIP_CONFIG_FILE": os.devnull,
        "UV_CACHE_DIR": str(folder / "cache"),
    }


def fetched(folder: Path, *needed: str) -> None:
    """Have pip download packages from wherever it has them on this machine."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(folder), *needed]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"pip reaches no index here: {done.stderr.strip().splitlines()[-1]}")


def test_uses_the_environment_of_a_clone(plugin: Path, launch: Launch, bare: Path) -> None:
    (plugin / ".venv").symlink_to(sys.prefix)
    done = launch("--version", path=str(bare))
    assert (done.stdout, done.stderr, done.returncode) == (VERSION, "", 0)


def test_runs_its_own_code_whatever_is_installed(plugin: Path, launch: Launch) -> None:
    package = plugin / "src/trainwarden/__init__.py"
    package.write_text(package.read_text().replace(__version__, "9.8.7"))
    done = launch("--version", path=str(Path(sys.executable).parent))
    assert done.stdout == "trainwarden, version 9.8.7\n"


def test_finds_the_python_of_a_trainwarden_on_path(
    launch: Launch, tmp_path: Path, bare: Path
) -> None:
    program = f"#!{sys.executable}\nimport trainwarden\n"
    python(tmp_path / "installed", "trainwarden", program)
    done = launch("--version", path=os.pathsep.join((str(bare), str(tmp_path / "installed"))))
    assert (done.stdout, done.stderr) == (VERSION, "")
    assert (tmp_path / "data/python").read_text().splitlines()[0] == sys.executable


def test_remembers_and_asks_no_other_python_again(launch: Launch, tmp_path: Path) -> None:
    launch("--version", path=str(Path(sys.executable).parent))
    tripped = tmp_path / "tripped"
    python(tmp_path / "trap", "python3", f"#!/bin/sh\n: >'{tripped}'\nexit 1\n")
    done = launch("--version", path=str(tmp_path / "trap"))
    assert done.stdout == VERSION
    assert not tripped.exists()


def test_a_change_of_what_is_needed_asks_again(plugin: Path, launch: Launch) -> None:
    here = str(Path(sys.executable).parent)
    assert launch("--version", path=here).stdout == VERSION
    project = plugin / "pyproject.toml"
    project.write_text(project.read_text().replace('"click>=8.1"', '"click>=999"'))
    done = launch("--version", path=here, PIP_NO_INDEX="1", PIP_FIND_LINKS="")
    assert done.returncode == 1
    assert "click>=999" in done.stderr


def test_a_remembered_python_that_is_gone_is_replaced(launch: Launch, tmp_path: Path) -> None:
    here = str(Path(sys.executable).parent)
    launch("--version", path=here)
    kept = tmp_path / "data/python"
    kept.write_text(kept.read_text().replace(sys.executable, "/nowhere/python"))
    assert launch("--version", path=here).stdout == VERSION
    assert sys.executable in kept.read_text()


def test_a_remembered_python_that_lost_its_packages_is_told(
    plugin: Path, launch: Launch, tmp_path: Path, bare: Path
) -> None:
    launch("--version", path=str(Path(sys.executable).parent))
    kept = tmp_path / "data/python"
    kept.write_text(f"{bare}/python3\n{plugin.resolve()}\n")
    done = launch("--version")
    assert done.returncode == 1
    assert f"{bare}/python3 has no click any more: remove {kept}" in done.stderr
    kept.unlink()
    assert launch("--version", path=str(Path(sys.executable).parent)).stdout == VERSION


def test_is_found_through_links(plugin: Path, launch: Launch, tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to(plugin / "bin/trainwarden")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/two").symlink_to("../one")
    done = launch("--version", start=tmp_path / "deep/two", path=str(Path(sys.executable).parent))
    assert done.stdout == VERSION


def test_arguments_come_through_whole(launch: Launch) -> None:
    done = launch("read", "a  b'$c.log", path=str(Path(sys.executable).parent))
    assert "a  b'$c.log does not exist" in done.stderr
    assert done.returncode == 2


def test_the_training_s_python_path_is_not_ours(launch: Launch, tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise SystemExit('the training has a module click')")
    variables = {"PYTHONPATH": str(tmp_path), "PYTHONSAFEPATH": "1"}
    done = launch("--version", path=str(Path(sys.executable).parent), **variables)
    assert done.stdout == VERSION


def test_is_taken_for_no_training(plugin: Path) -> None:
    """A watch that runs beside another is seen in the process table as what it is."""
    command = [
        "python3",
        "-E",
        str(plugin / "src/trainwarden/__main__.py"),
        "run",
        "--log",
        "x.log",
    ]
    assert is_excluded(command)
    assert '"$source/__main__.py"' in (plugin / "bin/trainwarden").read_text()


def test_the_gpu_worker_starts_from_the_plugin(launch: Launch) -> None:
    done = launch("probe", path=str(Path(sys.executable).parent), PYTHONSAFEPATH="1")
    assert done.returncode == 0
    assert done.stdout.startswith("gpu: ")
    assert "Traceback" not in done.stdout
    assert "No module" not in done.stdout


def test_without_an_index_says_what_is_missing(launch: Launch, bare: Path, tmp_path: Path) -> None:
    done = launch("--version", path=str(bare), PIP_NO_INDEX="1", PIP_FIND_LINKS="")
    assert done.returncode == 1
    assert done.stdout == ""
    for requirement in interpreter.dependencies(ROOT):
        assert requirement in done.stderr or ";" in requirement
    assert "-m pip download -d wheels" in done.stderr
    assert "PIP_FIND_LINKS=" in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["setup.lock"]


def test_sets_an_environment_up_once(
    launch: Launch, bare: Path, tmp_path: Path, wheels: dict[str, str]
) -> None:
    """From a folder of wheels, as on a machine without a network; two come at the same time."""
    variables = wheels | {"path": str(bare)}
    # What a command that was killed meanwhile has left is cleared away.
    digest = hashlib.sha256("\n".join(interpreter.dependencies(ROOT)).encode()).hexdigest()[:12]
    own = tmp_path / f"data/python-{digest}"
    (own / "bin").mkdir(parents=True)
    (own / "bin/python").symlink_to("/nowhere/python")
    with ThreadPoolExecutor() as pool:
        both = list(pool.map(lambda _: launch("--version", **variables), range(2)))
    for done in both:
        assert (done.stdout, done.returncode) == (VERSION, 0), done.stderr
    said = "".join(done.stderr for done in both)
    assert said.count("setting up its Python packages in") == 1
    assert said.count("\n") <= 2
    again = launch("--version", **variables)
    assert (again.stdout, again.stderr) == (VERSION, "")
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == sorted(
        ("python", own.name, "setup.lock")
    )


def test_sets_an_environment_up_with_uv(
    launch: Launch, bare: Path, tmp_path: Path, wheels: dict[str, str]
) -> None:
    fetched(tmp_path, "uv")
    (wheel,) = tmp_path.glob("uv-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (program,) = (name for name in archive.namelist() if name.endswith("/scripts/uv"))
        (bare / "uv").write_bytes(archive.read(program))
    (bare / "uv").chmod(0o755)
    first, second = (launch("--version", path=str(bare), **wheels) for _ in range(2))
    assert (first.stdout, first.returncode) == (VERSION, 0), first.stderr
    assert first.stderr.count("\n") == 1
    assert (second.stdout, second.stderr) == (VERSION, "")
    (made,) = (tmp_path / "data").glob("python-*/complete")
    made_by = (made.parent / "pyvenv.cfg").read_text()
    assert "uv = " in made_by, made_by


@pytest.fixture
def read_only(plugin: Path) -> Iterator[tuple[str, ...]]:
    """Makes the plugin's folder one that cannot be written; what a command is to be started by."""
    if os.geteuid():
        folders = [folder for folder in (plugin, *plugin.rglob("*")) if folder.is_dir()]
        for folder in folders:
            folder.chmod(0o555)
        yield ()
        for folder in folders:
            folder.chmod(0o755)
        return
    mount = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    own = ("unshare", "-m", "sh", "-c", mount, str(plugin))
    try:
        subprocess.run([*own, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("root may write everywhere, and may mount nothing here")
    yield own


def test_a_plugin_that_cannot_be_written_is_compiled_once(
    plugin: Path, read_only: tuple[str, ...], tmp_path: Path
) -> None:
    environment = {
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
        "TRAINWARDEN_DATA": str(tmp_path / "data"),
    }
    command = [*read_only, str(plugin / "bin/trainwarden"), "--version"]
    for _ in range(2):
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert (done.stdout, done.stderr) == (VERSION, "")
    assert list((tmp_path / "data/pycache").rglob("cli.*.pyc"))
    assert not list(plugin.rglob("*.pyc"))


def test_a_data_folder_that_cannot_be_made_stops_nobody_who_has_all(
    launch: Launch, tmp_path: Path, bare: Path
) -> None:
    (tmp_path / "file").touch()
    data = str(tmp_path / "file/data")
    done = launch("--version", path=str(Path(sys.executable).parent), TRAINWARDEN_DATA=data)
    assert (done.stdout, done.stderr) == (VERSION, "")
    done = launch("--version", path=str(bare), TRAINWARDEN_DATA=data)
    assert done.returncode == 1
    assert "cannot set up Python packages in" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_home_nothing_is_kept(launch: Launch, bare: Path) -> None:
    nowhere = {"HOME": "", "TRAINWARDEN_DATA": ""}
    there = {path.name for path in Path("/").iterdir()}
    done = launch("--version", path=str(Path(sys.executable).parent), **nowhere)
    assert (done.stdout, done.stderr) == (VERSION, "")
    done = launch("--version", path=str(bare), **nowhere)
    assert done.returncode == 1
    assert "HOME is not set" in done.stderr
    assert "set TRAINWARDEN_DATA to a folder" in done.stderr
    assert {path.name for path in Path("/").iterdir()} == there


def test_no_python(launch: Launch) -> None:
    done = launch("--version")
    assert done.returncode == 1
    assert "needs Python 3.10 or newer" in done.stderr
    assert "apt-get install python3" in done.stderr


def test_an_old_python_is_named(launch: Launch, tmp_path: Path) -> None:
    old = '#!/bin/sh\n[ "$1" = -V ] && echo Python 3.8.19\nexit 1\n'
    python(tmp_path / "old", "python3", old)
    done = launch("--version", path=str(tmp_path / "old"))
    assert done.returncode == 1
    assert "python3 (Python 3.8.19)" in done.stderr


@pytest.mark.parametrize(
    ("requirement", "met"),
    [
        ("click>=8.1", True),
        ("click", True),
        ("click>=999", False),
        ("no-such-package-here", False),
        ("no-such-package-here; python_version < '3.4'", True),
        ("no-such-package-here>=2.0; python_version < '9.0'", False),
        ("click ~= strange", False),
    ],
)
def test_requirements_are_held_against_what_is_installed(requirement: str, met: bool) -> None:
    assert (interpreter.lacking([requirement]) == []) is met


def test_every_dependency_is_one_that_can_be_judged() -> None:
    assert interpreter.lacking(interpreter.dependencies(ROOT)) == []


def test_the_launcher_is_plain_shell() -> None:
    dash = shutil.which("dash")
    if dash is None:
        pytest.skip("dash is not installed")
    subprocess.run([dash, "-n", ROOT / "bin/trainwarden"], check=True)
