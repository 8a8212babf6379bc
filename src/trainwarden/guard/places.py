"""Which files hold code or config, which could hold evidence, and which are not written."""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainwarden.guard.record import Open

CODE = frozenset(
    ".py .pyi .pyx .sh .bash .zsh .sbatch .slurm .c .cc .cpp .cxx .cu .cuh .h .hpp .rs .go .jl"
    " .lua .js .ts .tsx .java .scala .proto .cmake .mk .j2 .jinja".split()
)
SETTINGS = frozenset(".yaml .yml .toml .ini .cfg .gin .jsonnet".split())
LOGS = frozenset(".log .out .err .jsonl .csv .tsv .ipynb .html .wandb .parquet .db .gz".split())
NOTES = (".md", ".txt", ".rst", ".yaml", ".yml", ".json")
"""Kinds of new files that nothing of a project takes in by itself."""
NAMES = frozenset(
    "makefile justfile license licence codeowners procfile pipfile .gitignore .dockerignore"
    " .gitattributes .editorconfig .python-version .pre-commit-config.yaml".split()
)
CONFIG_WORDS = frozenset(
    "config configs configuration cfg conf args arguments params param hparams hyperparams"
    " hyperparameters settings options deepspeed ds accelerate fsdp zero zero1 zero2 zero3 package"
    " tsconfig pyproject".split()
)
RESULT_WORDS = frozenset(
    "metrics metric results result state states history summary score scores loss losses progress"
    " log logs status output outputs events eval evals benchmark benchmarks report".split()
)
CONFIG_FOLDERS = frozenset("conf confs config configs cfg cfgs recipes".split())
_NEVER_CONFIG = frozenset("result results state states history summary score scores".split())
RESULT_FOLDERS = frozenset(
    "wandb mlruns mlflow runs outputs output checkpoints checkpoint ckpts ckpt logs log tb tb_logs"
    " tensorboard tensorboard_logs lightning_logs results multirun artifacts slurm_logs events"
    " samples eval_results ray_results dvclive aim .aim neptune .neptune comet".split()
)
_CHECKPOINT_STARTS = ("checkpoint", "ckpt", "global_step", "iter_", "epoch", "events.out", "step_")
_CHECKPOINT_ENDS = (".pt", ".pth", ".ckpt", ".safetensors", ".distcp", ".wandb")
_PLUGIN_FOLDERS = ("skills", "steps", "agents", "commands", "hooks", "docs", "src")
_LIBRARY = ("/site-packages/", "/dist-packages/")
_TOOLS = frozenset((".git", ".venv", "venv", "node_modules", "__pycache__", ".ruff_cache"))
"""Folders that no run writes to, and that are not worth a look."""
_CODE_TYPES = frozenset("py python sh c cpp cuda rust go js ts cmake make lua julia".split())
_TAKEN_IN = frozenset("bin venv site-packages claude.md claude.local.md agents.md".split())
"""Names by which a shell, Python or the client itself finds what it follows."""
_LONGEST = 4_096
"""Characters of a path that a system follows."""
_MOST = 1_500
"""Entries of a folder that are looked through before it counts as unknown."""


def kind(name: str, *, beside: bool = False) -> str:
    """`code`, `config` or "" (anything else: a log, an output, not known), by a file's name.

    `beside`: it lies in a folder of configs, where one for evaluation, say, may be as well.
    """
    name = name.lower()
    stem, ending = os.path.splitext(name)
    if ending in CODE or ending == ".pyc":
        return "code"
    if name in NAMES or stem in ("dockerfile", "containerfile", "makefile"):
        return "config"
    words = set(stem.replace("-", "_").replace(".", "_").replace(" ", "_").split("_"))
    if beside and ending in (*SETTINGS, ".json"):
        never = RESULT_WORDS - CONFIG_WORDS if ending == ".json" else _NEVER_CONFIG
        return "" if words & never else "config"
    if ending in SETTINGS:
        return "config" if words & CONFIG_WORDS or not words & RESULT_WORDS else ""
    if ending == ".json":
        return "config" if words & CONFIG_WORDS and not words & {"state", "metrics"} else ""
    if ending == ".txt":
        return "config" if stem.startswith(("requirements", "constraints", "cmakelists")) else ""
    if ending in (".md", ".rst"):
        return "" if words & RESULT_WORDS else "config"
    return "config" if not ending and stem in ("readme", "changelog", "authors", "version") else ""


def tells_of_results(path: str) -> bool:
    """Whether a file's name says that it holds what a run did, whatever it is given as."""
    stem, ending = os.path.splitext(os.path.basename(path).lower())
    words = set(stem.replace("-", "_").replace(".", "_").replace(" ", "_").split("_"))
    of_results = bool(words & RESULT_WORDS) and not words & CONFIG_WORDS
    return of_results or ending in LOGS or "state" in words


def looks_like_checkpoint(name: str) -> bool:
    """Whether a name tells of a checkpoint, and so how far a run is."""
    name = name.lower()
    if name.endswith(_CHECKPOINT_ENDS):
        return True
    return name.startswith(_CHECKPOINT_STARTS) and any(sign.isdigit() for sign in name)


def inside(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it; letters' case makes no difference."""
    path, folder = path.casefold(), folder.casefold().rstrip("/")
    return path == folder or path.startswith(folder + "/")


def resolve(path: str) -> str:
    """Where a path leads; as it is spelled where that cannot be followed."""
    if len(path) > _LONGEST:
        path = os.path.normpath(path)
    if len(path) > _LONGEST:
        return path
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return os.path.normpath(path)


class Ground:
    """Where a call stands: the project, the plugin, the runs that are watched."""

    def __init__(self, cwd: str, project: str, plugin: str, held: Iterable[Open]) -> None:
        held = list(held)
        self.project = resolve(project)
        self.cwd = os.path.join(self.project, cwd)
        self.plugin = resolve(plugin) if plugin else ""
        self.roots = {self.project, *(resolve(one.root) for one in held)}
        self.config = [resolve(path) for one in held for path in one.config]
        self._told = [path for one in held for path in one.evidence]
        self._evidence: list[str] | None = None
        self._homes: list[str] | None = None

    @property
    def evidence(self) -> list[str]:
        """The watched jobs' logs, outputs, trackers, checkpoints: resolved when asked for first."""
        if self._evidence is None:
            self._evidence = [resolve(path).casefold().rstrip("/") for path in self._told]
        return self._evidence

    @property
    def homes(self) -> list[str]:
        """The folders `monitoring-logs/` of the roots, and where those that are links lead."""
        if self._homes is None:
            spelled = [f"{root}/monitoring-logs" for root in self.roots]
            self._homes = [*spelled, *(resolve(home) for home in spelled if os.path.islink(home))]
        return self._homes

    def full(self, path: str) -> str:
        """A path as spelled in the call, absolute, nothing resolved."""
        path = path.strip()
        if path == "~" or path.startswith("~/"):
            path = os.environ.get("HOME", "/") + path[1:]
        return os.path.join(self.cwd, path)

    def real(self, path: str) -> str:
        """Where a path leads."""
        return resolve(self.full(path))

    def is_kept(self, path: str) -> bool:
        """Whether a path lies in `monitoring-logs/`, which only the runtime writes."""
        real = self.real(path)
        return any(inside(real, home) for home in self.homes)

    def is_evidence(self, real: str) -> bool:
        """Whether a real path is a log, output, tracker or checkpoint of a watched job."""
        path = real.casefold()
        return any(path == known or path.startswith(known + "/") for known in self.evidence)

    def unseen(self, path: str) -> str | None:
        """Why a file must not be read before gate 1; None where it may be."""
        full = self.full(path)
        real = resolve(full)
        if not path.strip() or "\0" in path:
            return "no file is named"
        for spelled in (os.path.normpath(full), real):
            if ("/" + spelled.lstrip("/")).startswith(("/proc/", "/dev/", "/sys/")):
                return f"{path} is no file of the project"
        if real in self.config and not os.path.isdir(real) and self._may_be_config(real):
            return None
        if self._is_of_hub(full, real):
            return self._by_inode(path, real)
        return self._by_place(path, real) or self._by_inode(path, real)

    def _is_of_hub(self, full: str, real: str) -> bool:
        """Whether it is a downloaded model's config or code, whose text may lie under a digest."""
        place = resolve(os.path.dirname(full))
        model, snapshots, _ = place.partition("/snapshots/")
        if not snapshots or not os.path.basename(model).startswith("models--"):
            return False
        near = inside(real, place) or inside(real, model + "/blobs")
        name = os.path.basename(full)
        named = kind(name) and not name.lower().endswith((".md", ".rst"))
        return bool(named) and near and not (inside(real, self.project) or self.is_evidence(real))

    def _may_be_config(self, real: str) -> bool:
        """Whether what was named as a job's config is none of its logs and results."""
        return real.casefold() not in self.evidence and not tells_of_results(real)

    def _by_inode(self, path: str, real: str) -> str | None:
        try:
            found = os.stat(real)
        except OSError:
            return None
        if stat.S_ISDIR(found.st_mode):
            return f"{path} is a folder"
        if not stat.S_ISREG(found.st_mode):
            return f"{path} is no regular file"
        if found.st_nlink > 1 and not any(part in real for part in _LIBRARY):
            return f"{path} has a second name (a hard link), and could be a log"
        return None

    def _by_place(self, path: str, real: str) -> str | None:
        known = self._kind(real)
        for home in self.homes:
            if inside(real, home):
                return self._by_gate(path, real[len(home) + 1 :])
        if self.is_evidence(real) and not self._is_around(real, known):
            return f"{path} belongs to the run's logs, outputs or checkpoints"
        if self.is_of_plugin(real) and (known or real.endswith(".md")):
            return None
        if not known:
            return f"{path} is neither code nor config by its name"
        if known == "code" and any(part in real for part in _LIBRARY):
            return None
        beside = [os.path.dirname(path) for path in self.config] if known == "code" else []
        for home in (self.project, *self.config, *beside):
            if inside(real, home):
                parts = real[len(home) :].lower().split("/")[:-1]
                if known != "code" and self._tells(parts):
                    return f"{path} lies in a folder of results"
                return None
        return f"{path} lies outside of the project"

    def _kind(self, real: str) -> str:
        below = real[len(self.project) :] if inside(real, self.project) else ""
        folders = below.lower().split("/")[1:-1]
        return kind(os.path.basename(real), beside=not CONFIG_FOLDERS.isdisjoint(folders))

    def unnamed(self, path: str) -> str | None:
        """Why a file cannot be named as a job's config before gate 1; None where it can."""
        real = self.real(path)
        if self.is_evidence(real) or not kind(os.path.basename(real)):
            return f"{path} is no config by its name or place"
        return self._by_inode(path, real)

    def _is_around(self, real: str, known: str) -> bool:
        """Code where the job's output folder is the whole project."""
        around = [path for path in self.evidence if inside(real, path)]
        return known == "code" and all(inside(self.project, path) for path in around)

    def _by_gate(self, path: str, below: str) -> str | None:
        parts = below.split("/")
        name = parts[-1]
        if len(parts) == 1 and name in ("README.md", "learnings.md"):
            return None
        if len(parts) == 2 and parts[0] == "jobs" and name.endswith(".json"):
            return None
        of_session = name == "session.json" or (name[:1].isdigit() and name.endswith(".md"))
        if len(parts) in (2, 3) and parts[-2][:1].isdigit() and of_session:
            return None
        return f"{path} is no gate of a session"

    @staticmethod
    def _tells(parts: Iterable[str]) -> bool:
        return any(part in RESULT_FOLDERS or looks_like_checkpoint(part) for part in parts)

    def is_of_plugin(self, real: str) -> bool:
        """Whether a real path is one of the plugin's own texts or sources."""
        if not self.plugin or not inside(real, self.plugin):
            return False
        return real[len(self.plugin) + 1 :].split("/")[0] in _PLUGIN_FOLDERS

    def unlisted(self, path: str) -> str | None:
        """Why the names in a folder (or a file's) must not be listed before gate 1."""
        real = self.real(path)
        if not os.path.isdir(real):
            return self.unseen(path)
        if self._is_of_hub(f"{real}/config.json", f"{real}/config.json"):
            return None
        reason = self._by_folder(path, real)
        if reason:
            return reason
        try:
            names = os.listdir(real)
        except OSError:
            return None
        if any(looks_like_checkpoint(name) for name in names):
            return f"{path} has checkpoints, and their names tell how far the run is"
        return None

    def _by_folder(self, path: str, real: str) -> str | None:
        if any(inside(real, place) and not inside(self.project, place) for place in self.evidence):
            return f"{path} belongs to the run's logs, outputs or checkpoints"
        if self.is_of_plugin(real) or any(part in real + "/" for part in _LIBRARY):
            return None
        for home in (self.project, *self.config):
            if inside(real, home):
                if self._tells(real[len(home) :].lower().split("/")):
                    return f"{path} is a folder of results"
                return None
        return f"{path} lies outside of the project"

    def unsearched(self, path: str, globs: list[str], *, names: bool = False) -> str | None:
        """Why a folder must not be searched, deeply, before gate 1.

        `globs` are the files that the search is limited to, none for no limit; `names` where it
        shows no more than their names.
        """
        real = self.real(path)
        if not os.path.isdir(real):
            return self.unseen(path)
        reason = self._by_folder(path, real)
        if reason:
            return reason
        kinds = {ending(glob) for glob in globs}
        if globs and (kinds <= CODE or (names and kinds <= CODE | SETTINGS)):
            return None
        if not kinds <= CODE | SETTINGS | {".json", ".md"}:
            return "a search is to be limited to code or config by its glob, as in *.py"
        if self._is_clean(real, kinds):
            return None
        return f"{path} holds results too: limit the search to *.py, or to a folder of configs"

    def _is_clean(self, folder: str, kinds: set[str]) -> bool:
        """Whether all files of some kinds (none: of any) below a folder are code or config."""
        left, seen = [(folder, False)], 0
        while left:
            place, tells = left.pop()
            try:
                with os.scandir(place) as entries:
                    for entry in entries:
                        seen += 1
                        name = entry.name.lower()
                        if entry.is_symlink():
                            if not kinds:
                                return False
                        elif entry.is_dir():
                            of_results = self.is_evidence(entry.path) or self._tells([name])
                            if name not in _TOOLS:
                                left.append((entry.path, tells or of_results))
                        elif not kinds or os.path.splitext(name)[1] in kinds:
                            known = self._kind(entry.path)
                            fine = known == "code" or (known and not tells)
                            if not fine or entry.stat().st_nlink > 1:
                                return False
                        if seen > _MOST:
                            return False
            except OSError:
                return False
        return True

    def unwritten(self, path: str, *, note: bool = False) -> str | None:
        """Why a file must not be written under authority observe; None where it may be.

        `note`: by a command's output, which belongs below /tmp.
        """
        real = self.real(path)
        reason = self.unchanged(path)
        if reason:
            return reason
        if self.is_evidence(real) or any(inside(real, place) for place in self.config):
            return f"{path} belongs to the run"
        if inside(real, self.project) and not note:
            if os.path.lexists(real):
                return f"{path} is a file of the project"
            if not real.lower().endswith(NOTES):
                return f"{path} could be taken in by the run: notes end in .md, .txt or .yaml"
            return self._by_new_name(path, real[len(self.project) + 1 :])
        for scratch in _scratch():
            if inside(real, scratch) and not inside(self.project, scratch):
                return self._by_new_name(path, real[len(scratch) + 1 :])
        if inside(real, resolve("/tmp")) and not inside(real, self.project):  # noqa: S108 - where notes may go
            if os.path.lexists(real):
                return f"{path} exists, and may be somebody's: take a new name"
            return self._by_new_name(path, real[1:])
        return f"{path} is no place for notes: a new file below /tmp is"

    @staticmethod
    def _by_new_name(path: str, below: str) -> str | None:
        parts = below.lower().split("/")
        if any(part[:1] == "." or part in _TAKEN_IN for part in parts):
            return f"{path} would be taken for a tool or a setting"
        if any(looks_like_checkpoint(part) for part in parts):
            return f"{path} would be taken for a checkpoint"
        return None

    def unchanged(self, path: str) -> str | None:
        """Why a file is not written under any authority: gates, client settings, the plugin."""
        real = self.real(path)
        if self.is_kept(path):
            return f"{path}: nothing but the runtime writes below monitoring-logs/"
        own = [os.environ.get(name, "") for name in ("CLAUDE_CONFIG_DIR", "CLAUDE_PLUGIN_DATA")]
        places = [self.plugin, *(resolve(place) for place in own if place)]
        if any(place and inside(real, place) for place in places):
            return f"{path} belongs to the plugin or to the client's settings"
        if "/.claude/" in real + "/" or os.path.basename(real) == ".claude.json":
            return f"{path} belongs to the client's settings"
        return None


def ending(glob: str) -> str:
    """The ending that all files of a glob have; "" where it could be any."""
    name = glob.rsplit("/", 1)[-1].lower()
    if glob[:1] in "!-^" or "." not in name:
        return ""
    end = name[name.rindex(".") :]
    return end if end[1:].isalnum() else ""


def of_type(name: str) -> str:
    """A glob for what ripgrep calls a type of files."""
    if name in _CODE_TYPES:
        return "*.py"
    return f"*.{name}" if name in ("yaml", "toml", "ini") else "*"


def spread(glob: str) -> list[str]:
    """A glob's alternatives in braces, one a glob; nested ones stay, and fit nothing."""
    start, stop = glob.find("{"), glob.find("}")
    if start < 0 or stop < start:
        return [glob]
    return [glob[:start] + part + glob[stop + 1 :] for part in glob[start + 1 : stop].split(",")]


def _scratch() -> list[str]:
    """Where the client itself keeps what a session jots down."""
    place = os.environ.get("CLAUDE_CODE_TMPDIR")
    named = [resolve(place)] if place else []
    return [*named, resolve(f"/tmp/claude-{os.getuid()}")]  # noqa: S108
