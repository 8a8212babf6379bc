"""Finding a run's checkpoints on disk, and those among them that are not whole."""

from __future__ import annotations

import os
import re
import stat
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median

from trainwarden.evidence.checkpoint_files import WEIGHTS, file_problem

MAX_ENTRIES = 50_000
MAX_SECONDS = 3.0
MAX_DEPTH = 6
STILL_WRITING = 30.0
"""Seconds since its last write within which a checkpoint may still be being written."""
CHECKED = 4
"""Newest checkpoints of each shape whose files are looked into."""
MAX_LOOKED_INTO = 256
"""Files looked into at most."""

_NUMBERED = re.compile(
    r"(?i)(?:^|[-_.])(?P<word>global_?step|checkpoints?|ckpts?|chkpt|steps?|iters?|iteration|"
    r"epochs?|updates?|batch|ep|ba|snapshot|model)[-_=.]?(?P<number>\d+)(?=$|[-_.=a-z])"
)
_FOLDER = re.compile(
    r"(?i)(?:^|[-_.])(?:global_?step|checkpoint|ckpt|chkpt|step|iter|iteration|epoch|update|ep|ba|"
    r"snapshot)[-_=.]?\d+(?=$|[-_.=a-z])"
)
_PLAIN = re.compile(
    r"(?i)(?:^|[-_.])(?:checkpoints?|ckpts?|chkpt|last|best|latest|final|model|weights|state|params|"
    r"snapshot|train_state|state_dict|net|generator|policy|agent|actor|critic|adapter_model|"
    r"pytorch_model|consolidated)(?:$|[-_.=\d])"
)
_STRONG = re.compile(r"(?i)checkpoint|ckpt|chkpt|global_?step|snapshot|iter_\d|tmp")
# Data, tokenizers and a folder's companions have the same suffixes.
_NO_CHECKPOINT = re.compile(
    r"(?i)^(?:train(?!_state)|val|valid|validation|test|dev|data|dataset|features?|tokens?|embeddings?|vocab|"
    r"tokenizer.*|training_args|optimizer|optim|scheduler|scaler|rng_state.*|random_states.*|"
    r"special_tokens.*|train_data|eval_data|cache|samples?|images?|labels?)(?:[-_.]|$)"
)
_LEFTOVER = re.compile(
    r"(?i)(?:\.(?:tmp|temp|partial|part|incomplete)(?:[-_.]?\w{0,40})?$|^\.?te?mp[-_.]|"
    r"\.orbax-checkpoint-tmp|\.tmp-)"
)
_SHARD = re.compile(r"[-_](\d{5})-of-(\d{5})")
_ORBAX = {"_CHECKPOINT_METADATA", "_METADATA", "manifest.ocdbt", "checkpoint", "commit_success.txt"}
_SKIPPED = frozenset(
    {
        ".git", ".venv", "venv", "node_modules", "__pycache__", "site-packages", "wandb", "mlruns",
        "monitoring-logs", ".cache", "datasets", "dataset", "tensorboard", ".ipynb_checkpoints",
        ".mypy_cache", ".ruff_cache",
    }
)  # fmt: skip


@dataclass
class Checkpoint:
    """One checkpoint: a file, a set of shards, or a folder with all that is in it."""

    path: Path
    shape: str
    """Its place with the numbers taken out: siblings have the same."""
    step: int | None
    epoch: int | None
    files: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Size (bytes) and time of the last write (Unix seconds) of each file, by relative name."""
    problems: list[str] = field(default_factory=list)
    writing: bool = False

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(size for size, _ in self.files.values())

    @property
    def modified(self) -> float:
        """Unix seconds of the latest write."""
        return max((moment for _, moment in self.files.values()), default=0.0)

    @property
    def leftover(self) -> bool:
        """Whether its name says that it is a temporary copy."""
        return bool(_LEFTOVER.search(self.path.name))

    @property
    def empty(self) -> bool:
        """Whether it is a folder with nothing in it."""
        return set(self.files) <= {""}

    def file(self, name: str) -> Path:
        """Where a file of this checkpoint lies."""
        return self.path / name if name and self.path.is_dir() else self.path.parent / name


@dataclass
class Scan:
    """What a walk over some folders found."""

    checkpoints: list[Checkpoint] = field(default_factory=list)
    """Oldest first by their last write."""
    notes: list[str] = field(default_factory=list)
    """What could not be read, or was not looked at to keep within bounds."""

    @property
    def incomplete(self) -> list[Checkpoint]:
        """Those with something wrong, oldest first."""
        return [one for one in self.checkpoints if one.problems]

    @property
    def whole(self) -> list[Checkpoint]:
        """Those with nothing wrong that aren't being written, oldest first."""
        return [one for one in self.checkpoints if not one.problems and not one.writing]

    def interval(self) -> float | None:
        """Median seconds between one save and the next, over the shape with most checkpoints."""
        gaps = [b.modified - a.modified for a, b in pairwise(self._main())]
        gaps = [gap for gap in gaps if gap > 0]
        return median(gaps) if gaps else None

    def step_interval(self) -> int | None:
        """Median steps from one save to the next, likewise."""
        gaps = [b.step - a.step for a, b in pairwise(self._main()) if a.step and b.step]
        gaps = [gap for gap in gaps if gap > 0]
        return int(median(gaps)) if gaps else None

    def _main(self) -> list[Checkpoint]:
        shapes: dict[str, list[Checkpoint]] = {}
        for one in self.checkpoints:
            shapes.setdefault(one.shape, []).append(one)
        return max(shapes.values(), key=len, default=[])


def scan(folders: Iterable[Path], now: float, *, may_be_writing: bool = True) -> Scan:
    """Find and check the checkpoints below some folders; `now` is in Unix seconds.

    Bounded: `MAX_ENTRIES` entries, `MAX_SECONDS`, `MAX_DEPTH` levels; links are not followed.
    With `may_be_writing` False (the run is known to be dead) nothing counts as still in writing.
    """
    walk = _Walk()
    for folder in folders:
        walk.enter(folder, 0)
    result = Scan(walk.found, walk.notes)
    # `step_7/` may hold anything, unless a sibling of that name holds state.
    series = {one.shape for one in result.checkpoints if _has_state(one)}
    result.checkpoints = [
        one
        for one in result.checkpoints
        if one.shape in series or one.leftover or (one.empty and _STRONG.search(one.path.name))
    ]
    result.checkpoints.sort(key=lambda one: (one.modified, one.path))
    for one in result.checkpoints:
        one.writing = may_be_writing and abs(now - one.modified) < STILL_WRITING
    _judge(result)
    return result


class _Walk:
    def __init__(self) -> None:
        self.found: list[Checkpoint] = []
        self.notes: list[str] = []
        self.entries = 0
        self.deadline = time.monotonic() + MAX_SECONDS
        self.seen: set[tuple[int, int]] = set()

    def full(self) -> bool:
        over = self.entries >= MAX_ENTRIES or time.monotonic() > self.deadline
        if over and not any("stopped" in note for note in self.notes):
            self.notes.append(f"stopped looking for checkpoints after {self.entries} entries")
        return over

    def list(self, folder: Path) -> list[tuple[os.DirEntry[str], os.stat_result]]:
        listed: list[tuple[os.DirEntry[str], os.stat_result]] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if self.full():
                        break
                    self.entries += 1
                    try:
                        listed.append((entry, entry.stat(follow_symlinks=False)))
                    except OSError:
                        continue  # gone between listing and looking: being rotated
        except OSError as error:
            self.notes.append(f"{folder}: {error.strerror}")
        # The newest first: where the walk has to stop, they are what matters.
        return sorted(listed, key=lambda item: (-item[1].st_mtime, item[0].name))

    def enter(self, folder: Path, depth: int) -> None:
        try:
            info = folder.stat()
        except OSError as error:
            self.notes.append(f"{folder}: {error.strerror}")
            return
        if (info.st_dev, info.st_ino) in self.seen or self.full():
            return
        self.seen.add((info.st_dev, info.st_ino))
        sets: dict[str, Checkpoint] = {}
        for entry, status in self.list(folder):
            path = Path(entry.path)
            if stat.S_ISDIR(status.st_mode):
                if self.is_checkpoint(path):
                    one = Checkpoint(path, _shape(path), *_numbers(entry.name))
                    self.gather(path, one, "", status)
                    if not self.full():  # else it may be listed only in part
                        self.found.append(one)
                elif depth < MAX_DEPTH and entry.name not in _SKIPPED:
                    self.enter(path, depth + 1)
            elif stat.S_ISREG(status.st_mode) and _is_checkpoint_file(entry.name):
                # Shards and the parts of a TensorFlow checkpoint are one.
                base = _SHARD.sub("", entry.name)
                base = re.sub(r"\.(?:index|meta|data)$", "", base)
                one = sets.setdefault(
                    base, Checkpoint(path, _shape(folder / base), *_numbers(base))
                )
                one.files[entry.name] = (status.st_size, status.st_mtime)
        if not self.full():
            self.found.extend(sets.values())

    def is_checkpoint(self, folder: Path) -> bool:
        """By its name, and unless it is itself a place for a series of checkpoints.

        `7/` may be a run and `step_7/` the seventh stage of one; what they hold tells.
        """
        name = folder.name
        if _LEFTOVER.search(name):
            return bool(re.search(r"(?i)checkpoint|ckpt|step|iter", name))
        bare = re.fullmatch(r"\d{1,12}", name)
        if not bare and not _FOLDER.search(name):
            return False
        own = set(_numbers(name))
        held = [(entry.name, status) for entry, status in self.list(folder)]
        for inner, status in held:
            named = _FOLDER if stat.S_ISDIR(status.st_mode) else _NUMBERED
            if inner in {"checkpoints", "ckpts"}:
                return False
            state = stat.S_ISDIR(status.st_mode) or _is_checkpoint_file(inner)
            if state and named.search(_SHARD.sub("", inner)) and own.isdisjoint(_found(inner)):
                return False
        return not bare or any(inner in _ORBAX or _is_state(inner) for inner, _ in held)

    def gather(self, folder: Path, into: Checkpoint, prefix: str, own: os.stat_result) -> None:
        """All files of a checkpoint's folder, by name relative to it."""
        listed = self.list(folder)
        if not listed and not prefix:
            into.files[""] = (0, own.st_mtime)
        for entry, status in listed:
            name = f"{prefix}{entry.name}"
            if stat.S_ISDIR(status.st_mode):
                if prefix.count("/") < MAX_DEPTH:
                    self.gather(Path(entry.path), into, name + "/", status)
            elif stat.S_ISREG(status.st_mode):
                into.files[name] = (status.st_size, status.st_mtime)


def _is_checkpoint_file(name: str) -> bool:
    bare = _LEFTOVER.sub("", name)
    stem, dot, suffix = bare.rpartition(".")
    if re.search(r"\.data-\d{5}-of-\d{5}$", name):
        return True
    if not dot or "." + suffix.lower() not in WEIGHTS or _NO_CHECKPOINT.search(stem):
        return False
    if suffix.lower() in {"ckpt", "safetensors", "distcp"}:
        return True
    return bool(_NUMBERED.search(stem) or _PLAIN.search(stem) or re.search(r"[-_.=]\d+$", stem))


def _shape(path: Path) -> str:
    """The path with numbers taken out: siblings of one series share it."""
    name = re.sub(r"\d+(?:\.\d+)?(?:e-?\d+)?", "#", _LEFTOVER.sub("", path.name))
    return str(path.parent / name)


def _numbers(name: str) -> tuple[int | None, int | None]:
    """Step and epoch in a checkpoint's name."""
    step: int | None = None
    epoch: int | None = None
    plain = _SHARD.sub("", name)
    for match in _NUMBERED.finditer(plain):
        number = int(match["number"][:15])
        if match["word"].lower().startswith("ep"):
            epoch = number
        elif match["word"].lower() != "model" or step is None:
            step = number
    if step is None and epoch is None:
        trailing = re.search(r"(?:^|[-_=.])(\d{1,15})(?:\.\w+)?$", plain)
        step = int(trailing[1]) if trailing else None
    return step, epoch


def _found(name: str) -> set[int | None]:
    return {number for number in _numbers(name) if number is not None}


def _is_state(name: str) -> bool:
    """Whether a file carries state, unlike a tokenizer, a log or a lock beside it."""
    last = name.rpartition("/")[2]
    return Path(last).suffix.lower() in WEIGHTS or ".data-" in last or last == ".metadata"


def _has_state(one: Checkpoint) -> bool:
    return any(_is_state(name) or name.rpartition("/")[2] in _ORBAX for name in one.files)


def _judge(result: Scan) -> None:
    shapes: dict[str, list[Checkpoint]] = {}
    for one in result.checkpoints:
        shapes.setdefault(one.shape, []).append(one)
    budget = [MAX_LOOKED_INTO]
    for siblings in shapes.values():
        settled = [one for one in siblings if not one.writing]
        for one in settled:
            _names(one)
        _against_each_other([one for one in settled if _has_state(one) and not one.leftover])
        for place, one in enumerate(reversed(settled)):
            if place < CHECKED or one.problems:
                _contents(one, result.notes, budget)


def _names(one: Checkpoint) -> None:
    if one.leftover:
        one.problems.append("is a temporary copy that was never finished")
        return
    if not _has_state(one):
        one.problems.append("holds no state")
    left = [name for name in one.files if name and _LEFTOVER.search(name.rpartition("/")[2])]
    if left:
        one.problems.append(f"{left[0]} was never finished")
    totals: dict[str, tuple[int, set[int]]] = {}
    for name in one.files:
        if match := _SHARD.search(name):
            key = name[: match.start()] + name[match.end() :]
            count, have = totals.setdefault(key, (int(match[2]), set()))
            have.add(int(match[1]))
    for key, (count, have) in totals.items():
        if len(have) < count:
            one.problems.append(f"has {len(have)} of {count} shards of {key}")
    indexed = [name for name in one.files if name.endswith(".index")]
    if indexed and not any(".data-" in name for name in one.files):
        one.problems.append(f"{indexed[0]} is there without its data")
    parts = [name for name in one.files if name.endswith(".distcp")]
    if parts and not any(name.endswith(".metadata") for name in one.files):
        one.problems.append("its .metadata, written last, is missing")


def _against_each_other(siblings: Sequence[Checkpoint]) -> None:
    """What all others have and one has not; two others at least must agree on it."""
    if len(siblings) < 3:
        return
    names = [
        {_general(name) for name in one.files if _is_state(name) or name.endswith(".json")}
        for one in siblings
    ]
    counts = Counter(name for held in names for name in held)
    common = {name for name, count in counts.items() if count >= len(siblings) - 1}
    usual = median(one.size for one in siblings)
    for one, held in zip(siblings, names, strict=True):
        missing = sorted(common - held)
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            one.problems.append(f"lacks {missing[0]}{more}, which its siblings have")
        if one.size < usual / 2:
            one.problems.append(f"has {one.size} bytes where its siblings have {usual:.0f}")


def _general(name: str) -> str:
    """A file's name without the step in it, but with its shard or rank."""
    return re.sub(
        r"(?i)(step|iter|epoch|ckpt|checkpoint|update|loss|acc)([-_=.]?)\d+(?:\.\d+)?",
        r"\1\2#",
        name,
    )


def _contents(one: Checkpoint, notes: list[str], budget: list[int]) -> None:
    for name in sorted(name for name in one.files if name and _is_state(name)):
        if budget[0] <= 0:
            return
        budget[0] -= 1
        size, _ = one.files[name]
        try:
            problem = file_problem(one.file(name), size)
        except FileNotFoundError:
            continue  # rotated away meanwhile
        except OSError as error:
            notes.append(f"{one.file(name)}: {error.strerror}")
            continue
        if problem:
            one.problems.append(f"{name} {problem}")
