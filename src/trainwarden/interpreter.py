"""The Python that runs the plugin: one that has what trainwarden needs, or one set up for it.

`python -I interpreter.py ROOT DATA` prints its path and remembers it in DATA for `bin/trainwarden`;
with an empty DATA nothing is remembered or set up.
What the user is told goes to standard error. The dependencies stand in ROOT/pyproject.toml.
"""

from __future__ import annotations

import ast
import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

OLDEST = (3, 10)
VERSION = "{}.{}".format(*sys.version_info)
NAMES = ("python3", "python", *(f"python3.{minor}" for minor in range(14, OLDEST[1] - 1, -1)))
COMPLETE = "complete"
"""The file written last into an environment that was set up whole."""
NEEDED = re.compile(r"\s*([A-Za-z0-9][\w.-]*)\s*(?:>=\s*([\d.]+))?\s*(?:;\s*(.+))?")
MARKER = re.compile(r"python_version\s*<\s*['\"](\d+)\.(\d+)['\"]\s*")


class NoInterpreter(Exception):
    """There is none, and none could be set up; the message says what to do."""


def dependencies(root: Path) -> list[str]:
    """The requirements that a plugin's pyproject.toml lists. Raises NoInterpreter."""
    path = root / "pyproject.toml"
    try:
        listed = re.search(r"^dependencies = (\[.*?^\])", path.read_text("utf-8"), re.S | re.M)
    except OSError as error:
        raise NoInterpreter(
            f"cannot read {path}: {error.strerror}: install the plugin anew"
        ) from error
    if listed is None:
        raise NoInterpreter(f"{path} lists no dependencies: install the plugin anew")
    # An array of strings is the same in TOML and in Python, and Python 3.10 reads no TOML.
    found: list[str] = ast.literal_eval(listed[1])
    return found


def lacking(needed: Sequence[str]) -> list[str]:
    """Those of the requirements that this Python does not meet."""
    return [requirement for requirement in needed if not _met(requirement)]


def _met(requirement: str) -> bool:
    parts = NEEDED.fullmatch(requirement)
    if parts is None or _marked_out(requirement):
        return parts is not None
    name, least, _ = parts.groups()
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return least is None or _numbers(version) >= _numbers(least)


def _marked_out(requirement: str) -> bool:
    """Whether only older Pythons need it."""
    parts = NEEDED.fullmatch(requirement)
    below = MARKER.fullmatch(parts[3]) if parts and parts[3] else None
    return below is not None and sys.version_info[:2] >= (int(below[1]), int(below[2]))


def _numbers(version: str) -> tuple[int, ...]:
    release = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, release[0].split("."))) if release else ()


def choose(root: Path, data: Path | None) -> str:
    """The path of a Python for the plugin, remembered in `data`. Raises NoInterpreter."""
    needed = dependencies(root)
    digest = hashlib.sha256("\n".join(needed).encode()).hexdigest()[:12]
    own = data / f"python-{digest}" if data else None
    chosen = next((path for python in _candidates(root, own) if (path := _fit(python, root))), None)
    if own is None or data is None:
        if chosen is None:
            raise NoInterpreter(
                "needs Python packages, and HOME is not set, which tells where to keep them: set "
                "it, or set TRAINWARDEN_DATA to a folder"
            )
        return chosen
    chosen = chosen or _set_up(own, root, needed)
    _remember(data, chosen, root)
    return chosen


def _candidates(root: Path, own: Path | None) -> Iterator[str]:
    """Pythons that may have the dependencies, the likeliest first."""
    yield str(root / ".venv/bin/python")
    if own and (own / COMPLETE).exists():
        yield str(own / "bin/python")
    yield from _of_installed(root)
    yield from NAMES


def _of_installed(root: Path) -> Iterator[str]:
    """The Pythons of other trainwardens on PATH, by their first lines."""
    for folder in os.get_exec_path():
        path = Path(folder) / "trainwarden"
        try:
            if path.resolve() == root / "bin/trainwarden":
                continue
            with path.open(encoding="utf-8", errors="replace") as file:
                head = file.readline(500) + file.readline(500)
        except OSError:
            continue
        # With a path too long for a first line, pip has a shell find it in the second.
        if python := re.search(
            r"#!(/\S*python[\d.]*)$|exec' \"?(/[^\"]*?python[\d.]*)\"? ", head, re.M
        ):
            yield python[1] or python[2]


def _fit(python: str, root: Path) -> str | None:
    """The interpreter's own path, where it has everything."""
    command = [python, "-E", "-c", PROBE, str(root)]
    try:
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.rstrip("\n") if done.returncode == 0 else None


PROBE = """
import sys
if sys.version_info < (3, 10):
    sys.exit(1)
from pathlib import Path
root = Path(sys.argv[1])
sys.path[0] = str(root / "src")
from trainwarden.interpreter import dependencies, lacking
if lacking(dependencies(root)):
    sys.exit(1)
import trainwarden.faces.steps, trainwarden.analysts.rules
print(sys.executable)
"""


def _set_up(own: Path, root: Path, needed: Sequence[str]) -> str:
    """An environment of its own with the dependencies, made once. Raises NoInterpreter."""
    python = str(own / "bin/python")
    try:
        own.parent.mkdir(parents=True, exist_ok=True)
        with _alone(own.parent / "setup.lock"):
            # Another one may have made it while this one waited.
            if not ((own / COMPLETE).exists() and _fit(python, root)):
                shutil.rmtree(own, ignore_errors=True)
                try:
                    _build(own, needed)
                    if _fit(python, root) is None:
                        raise NoInterpreter(f"what was set up in {own} does not run")
                    (own / COMPLETE).touch()
                except BaseException:
                    shutil.rmtree(own, ignore_errors=True)
                    raise
    except OSError as error:
        where = error.filename or own
        raise NoInterpreter(
            f"cannot set up Python packages in {where}: {error.strerror}"
        ) from error
    return python


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    with path.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("another trainwarden is setting up its Python packages; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(own: Path, needed: Sequence[str]) -> None:
    """Make the environment with uv, or with venv and pip. Raises NoInterpreter."""
    _say(f"setting up its Python packages in {own}, once; this takes about a minute")
    uv = shutil.which("uv")
    if uv is not None and _built_by_uv(uv, own, needed):
        return
    shutil.rmtree(own, ignore_errors=True)
    python = str(own / "bin/python")
    maker, has = _maker()
    if has == "ensurepip":
        problem = _tried([maker, "-m", "venv", str(own)])
        pip = [python, "-m", "pip"]
    else:
        problem = _tried([maker, "-m", "venv", "--without-pip", str(own)])
        pip = [maker, "-m", "pip", "--python", python]
    problem = problem or _tried(
        [*pip, "install", "--quiet", "--disable-pip-version-check", *needed]
    )
    if problem is not None:
        raise NoInterpreter(_unfetched(needed, problem))


def _maker() -> tuple[str, str]:
    """A Python that can make environments, and by what. Raises NoInterpreter."""
    found: dict[str, str] = {}
    for python in (sys.executable, *NAMES):
        for module in ("ensurepip", "pip"):
            probe = f"import sys, venv, {module}; sys.exit(sys.version_info < {OLDEST})"
            if shutil.which(python) and _tried([python, "-c", probe]) is None:
                found.setdefault(module, python)
        if "ensurepip" in found:
            return found["ensurepip"], "ensurepip"
    if "pip" in found:
        return found["pip"], "pip"
    raise NoInterpreter(
        "needs Python packages, and no Python here can install any: "
        f"{sys.executable} has neither ensurepip nor pip.\n"
        f"Debian, Ubuntu: apt-get install python{VERSION}-venv; or install uv. Then run this again."
    )


def _built_by_uv(uv: str, own: Path, needed: Sequence[str]) -> bool:
    python = str(own / "bin/python")
    wheels = [f"--find-links={place}" for place in os.environ.get("PIP_FIND_LINKS", "").split()]
    offline = ["--no-index"] if os.environ.get("PIP_NO_INDEX") else []
    commands = (
        [uv, "venv", "--quiet", "--python", sys.executable, str(own)],
        [uv, "pip", "install", "--quiet", "--python", python, *wheels, *offline, *needed],
    )
    return all(_tried(command) is None for command in commands)


def _tried(command: Sequence[str]) -> str | None:
    """None where the command did it, else the last it said."""
    done = subprocess.run(  # noqa: S603
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=_own_environment(),
    )
    if done.returncode == 0:
        return None
    told = [line for line in done.stdout.splitlines() if line.strip()]
    errors = [line for line in told if line.startswith("ERROR")]
    return (errors or told or [f"exit code {done.returncode}"])[-1].removeprefix("ERROR: ")


def _own_environment() -> dict[str, str]:
    """Without what makes Python import from, and pip install into, the training's places."""
    foreign = {"PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT"}
    kept = {k: v for k, v in os.environ.items() if k not in foreign}
    # Somebody waits: without a network pip's own five attempts take half a minute.
    return {"PIP_RETRIES": "2"} | kept | {"PIP_USER": "0"}


def _unfetched(needed: Sequence[str], problem: str) -> str:
    lacks = [requirement for requirement in needed if not _marked_out(requirement)]
    return (
        f"needs Python packages that could not be installed ({problem}):\n"
        f"  {', '.join(lacks)}\n"
        "Nothing was left behind. With a network, run this again. Without one, have a Python that\n"
        "has them first on PATH; or fetch them on a machine with a network, the same system and\n"
        f"Python {VERSION}:\n"
        f"  python{VERSION} -m pip download -d wheels {shlex.join(lacks)}\n"
        "and with that folder here:\n"
        "  PIP_NO_INDEX=1 PIP_FIND_LINKS=/path/to/wheels trainwarden --version"
    )


def _remember(data: Path, python: str, root: Path) -> None:
    """For the next command; where it cannot be kept, that one looks again."""
    kept = data / "python"
    new = kept.with_name(f"python.{os.getpid()}")
    try:
        data.mkdir(parents=True, exist_ok=True)
        new.write_text(f"{python}\n{root}\n", encoding="utf-8")
        new.replace(kept)
    except (OSError, UnicodeError):
        pass


def _say(text: str) -> None:
    print(f"trainwarden: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        print(choose(Path(sys.argv[1]), Path(sys.argv[2]) if sys.argv[2] else None))
    except NoInterpreter as none:
        _say(str(none))
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
