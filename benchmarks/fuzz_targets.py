"""What `fuzz.py` feeds: for each kind of reader the check, its files to begin with, its words."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.run_files import chunked, events, field, item, numbered, record, scalar, start

SECONDS_PER_MEGABYTE = 20.0
"""Of processor time, for text that no trainer prints: an ordinary log takes a hundredth of it."""
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_WHOLE = 5000
"""Longer inputs are read only once."""
_BETWEEN = b"\xf5\xf5"
"""Between records that are to be framed."""


class Broken(AssertionError):
    """An input that a reader does not stand."""


Check = Callable[[bytes, "Limit"], None]
Limit = Callable[[int], Any]
"""A context in which so many bytes must be read in time."""


@dataclass(frozen=True)
class Target:
    """One kind of reader. `check` raises `Broken`, or whatever the reader raises."""

    check: Check
    seeds: tuple[bytes, ...]
    words: tuple[str | bytes, ...]
    takes: Callable[[Path, bytes], bytes | None]
    """A file as an input for it, None where it is of another kind."""
    modules: tuple[str, ...]
    """Where a guided search looks which code is reached."""


# Text ------------------------------------------------------------------------------------------

WORDS = (
    *("loss", "step", "iter", "epoch", "lr", "grad_norm", "train", "val", "eval", "acc", "reward"),
    *(": ", "=", " ", ", ", " | ", "/", "%", "[", "]", "(", ")", "{", "}", "'", '"', "\t", "\r"),
    *("\n", "1", "0.5", "10/20", "nan", "-inf", "1e-4", "1,234", "17.9k", "45.1GiB", "3.4it/s"),
    *("ms", "s/it", "|████  |", "00:10<00:20", "tensor(", "np.float64(", "device='cuda:0'"),
    *("[rank0]:", "[1,0]<stdout>:", "(main_task pid=7) ", "0: ", "2026-01-02 03:04:05,678", "INFO"),
    *("Traceback (most recent call last):\n", '  File "x.py", line 3\n', "ValueError: x\n"),
    *("{'loss': 2.5}", '{"step": 3, "loss": 0.5}', "step,loss\n1,2\n", "\x1b[32m", "\x1b[0m"),
    *("Epoch 1/3\n", "[====>...]", "Total timesteps: ", "Result for x:\n", "wandb: ", ":::MLLOG "),
    *("slurmstepd: error: ", "CANCELLED AT", "Training completed", "\x00", "\xff", "train_runtime"),
)
_ROW_WORDS = (
    *('{"step": 1, "loss": 0.5}\n', '{"a": {"b": [1, 2]}}\n', '"', "{", "}", "[", "]", ",", ":"),
    *("step,loss,lr\n", "1,2.5,1e-4\n", '"a,b",', "\t", "\n", "nan", "NaN", "Infinity", "null"),
    *("true", "-1", "1e999", "9" * 30, '"train": ', '"_timestamp": ', "\\u0041", "\\", ",,,", '""'),
)


def text_check(data: bytes, limit: Limit) -> None:
    """Read a log whole, in pieces, saved and restored on the way, with and without templates."""
    from trainwarden.metrics.columns import DERIVED
    from trainwarden.metrics.reader import LogReader

    def outcome(reader: LogReader) -> str:
        reading = reader.reading
        said = reading.to_json()
        # Timestamps that are broken in one line and whole in the next may be read or not.
        kept = {n: s.to_json() for n, s in reading.series.items() if s.original != DERIVED}
        said["series"], said["metrics"] = kept, sorted(kept)
        said["events"] = [repr(replace(event, time=None)) for event in reading.events]
        said["rest"] = [reading.tail, reading.notes, reading.lines]
        return json.dumps(said, sort_keys=True, allow_nan=False)

    def read(pieces: list[bytes], templates: bool = True, saved: bool = False) -> str:
        reader = LogReader("log", use_templates=templates)
        for piece in pieces:
            reader.feed(piece)
            if saved:
                reader.finish()
                reader = LogReader.from_state(json.loads(json.dumps(reader.to_state())))
        reader.finish(complete=True)
        return outcome(reader)

    with limit(len(data)):
        whole = read([data])
    if len(data) > _WHOLE:
        return
    if read(list(cut(data)), saved=True) != whole:
        raise Broken("pieces give another reading")
    if not _CONTROL.search(data) and read([data], templates=False) != whole:
        raise Broken("templates change the reading")


def cut(data: bytes) -> Iterator[bytes]:
    """Three pieces, the middle one short."""
    third = len(data) // 3
    yield from (data[:third], data[third : third + 7], data[third + 7 :])


def _text_of(path: Path, data: bytes) -> bytes | None:
    return None if b"\0" in data[:1000] or _is_rows(path) else data


def _is_rows(path: Path) -> bool:
    return path.suffix in {".csv", ".json", ".jsonl", ".tsv"}


def _rows_of(path: Path, data: bytes) -> bytes | None:
    return data if _is_rows(path) else None


# Run files -------------------------------------------------------------------------------------


def binary_check(kind: str, data: bytes, limit: Limit) -> None:
    """Read a run file whole, in pieces, and saved and restored.

    An even first byte: the file as it stands. An odd one: its records, to be framed with right
    sums, without which nothing behind the framing would be reached.
    """
    from trainwarden.metrics.readers import reader_for, reader_from

    if not data:
        return
    if data[0] % 2:
        records = data[1:].split(_BETWEEN)
        data = events(records) if kind == "tfevents" else chunked(records)
    else:
        data = data[1:]

    def read(pieces: list[bytes], saved: bool = False) -> str:
        reader: Any = reader_for("x.tfevents.1" if kind == "tfevents" else "x.wandb", b"")
        for piece in pieces:
            reader.feed(piece)
            if saved:
                reader.finish()
                reader = reader_from(json.loads(json.dumps(reader.to_state())))
        reader.finish(complete=True)
        reading = reader.reading
        said = [reading.to_json(), reading.tail, reading.notes, reading.lines, reading.config]
        said += [{name: one.to_json() for name, one in reading.series.items()}]
        said += [[repr(event) for event in reading.events]]
        return json.dumps(said, sort_keys=True, allow_nan=False)

    with limit(len(data)):
        whole = read([data])
    if len(data) <= _WHOLE and read(list(cut(data)), saved=True) != whole:
        raise Broken("pieces give another reading")


def _run_file(kind: str, _path: Path, data: bytes) -> bytes | None:
    """A run file's records as an input that is framed anew."""
    from trainwarden.metrics.binary.leveldb import Chunks
    from trainwarden.metrics.binary.tfrecord import TFRecords
    from trainwarden.metrics.readers import kind_of

    if kind_of("", data[:64]) != kind:
        return None
    if kind == "wandb":
        chunks = Chunks().feed(data)
        begins, ends, whole = chunks.begins, chunks.ends, chunks.data
    else:
        batch = TFRecords().feed(data)
        begins, ends, whole = batch.starts, batch.starts + batch.sizes, batch.bytes
    records = [whole[begin:end] for begin, end in zip(begins, ends, strict=True)]
    return b"\x01" + _BETWEEN.join(records)


_EVENTS = (
    b"\x00" + events(scalar("loss", i) for i in range(3)),
    b"\x01" + _BETWEEN.join([start(3), *(scalar("train/loss", i) for i in range(9))]),
)
_EVENT_WORDS = (record(b""), scalar("a", 1), start(2), _BETWEEN, b"\x09", b"\x15", b"\x42\x02\x08")
_ITEM = item("train/loss", "0.5")
_RUNS = (
    b"\x00" + chunked(numbered(2, [_ITEM] * 3)),
    b"\x01" + _BETWEEN.join(numbered(2, [_ITEM + item("step", str(i)) for i in range(9)])),
    *(b"\x01" + _BETWEEN.join(numbered(kind, [_ITEM] * 3)) for kind in (3, 5, 7, 12, 13, 17, 18)),
)
_RUN_WORDS = (_ITEM, item("a", '{"b": [1]}'), field(2, _ITEM), field(17, b""), _BETWEEN, b"\\u00")


# Configs ---------------------------------------------------------------------------------------

_SUFFIXES = (".yaml", ".json", ".toml", ".py", ".conf")
_CONFIGS = (
    b"\x00lr: 1e-4\nbase: &b {steps: 100}\nmodel:\n  <<: *b\n  layers: [1, 2]\n",
    b'\x01{"learning_rate": 1e-4, "optimizer": {"params": {"betas": [0.9, 0.95]}}}',
    b"\x02[train]\nsteps = 100\nlr = 1e-4\n[[stage]]\nname = 'a'\n",
    b"\x03lr = 1e-4\nmodel = dict(type='x', layers=[1] * 3)\nn = lr * 2 ** 3\n",
)
_CONFIG_WORDS = (
    *("lr: ", "learning_rate", "max_steps", "batch_size", " = ", "{", "}", "[", "]", "dict(", ")"),
    *("&a ", "*a", "<<: ", "!!python/name:os", "!x", "- ", "\n  ", "'", '"', '"""', "**", "9" * 9),
    *("1e999", "0x", "${a.b}", "_base_", "//", "/*", "*/", "\x00", "\ufeff", "[[a.b]]", "lambda: "),
    *("*" * 9, "(" * 50, "{a: " * 50, "null", "~", "2026-01-02", "1_000", "'a' * ", "a.b.c = "),
)


def config_check(data: bytes, limit: Limit) -> None:
    """Read a config file, of the kind that its first byte says, and the facts in it."""
    from trainwarden.evidence.config import ConfigError, load_config, training_facts

    if not data:
        return
    path = _folder() / f"config{_SUFFIXES[data[0] % len(_SUFFIXES)]}"
    path.write_bytes(data[1:])
    with limit(len(data)):
        try:
            found = load_config(path)
        except ConfigError as error:
            if len(str(error)) > 2000:
                raise Broken("an error that is too long") from None
            return
        repr(training_facts(found))


def _folder(made: list[Path] = []) -> Path:  # noqa: B006 (made once)
    if not made:
        made.append(Path(tempfile.mkdtemp(prefix="fuzz-config-")))
    return made[0]


def _config_of(path: Path, data: bytes) -> bytes | None:
    if path.suffix not in _SUFFIXES:
        return None
    return bytes([_SUFFIXES.index(path.suffix)]) + data


_OWN = "".join(f"step {i}: loss {5 - i / 9:.3f}, lr 1e-4, 3.4it/s\n" for i in range(9)).encode()
_ROWS = (
    b"".join(b'{"step": %d, "train": {"loss": 0.5}, "lr": 1e-4}\n' % i for i in range(9)),
    b"step,loss,lr\n" + b"".join(b"%d,0.5,1e-4\n" % i for i in range(9)),
)
_METRICS = ("trainwarden.metrics",)
TARGETS = {
    "text": Target(text_check, (_OWN,), WORDS, _text_of, _METRICS),
    "rows": Target(text_check, _ROWS, _ROW_WORDS, _rows_of, _METRICS),
    "tfevents": Target(
        partial(binary_check, "tfevents"),
        _EVENTS,
        _EVENT_WORDS,
        partial(_run_file, "tfevents"),
        _METRICS,
    ),
    "wandb": Target(
        partial(binary_check, "wandb"), _RUNS, _RUN_WORDS, partial(_run_file, "wandb"), _METRICS
    ),
    "config": Target(
        config_check, _CONFIGS, _CONFIG_WORDS, _config_of, ("trainwarden.evidence", "yaml")
    ),
}
