"""Hostile logs for the reader: `python benchmarks/fuzz.py [--seconds N] [FOLDER_OF_SEEDS …]`.

Each input is read whole, in pieces, with and without templates, and saved and restored on the way:
it must not raise, must give the same reading each way, and must take no longer than its size
allows. Where atheris is installed it guides the inputs by what code they reach
(`pip install atheris`); else they are mutated blindly. What broke is written to `--out`.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import random
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

SECONDS_PER_MEGABYTE = 20.0
"""Of processor time, for text that no trainer prints: an ordinary log takes a hundredth of it."""
GRACE = 1.0
HANG = 60
LARGEST = 1 << 18
CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")

WORDS = [
    *("loss", "step", "iter", "epoch", "lr", "grad_norm", "train", "val", "eval", "acc", "reward"),
    *(": ", "=", " ", ", ", " | ", "/", "%", "[", "]", "(", ")", "{", "}", "'", '"', "\t", "\r"),
    *("\n", "1", "0.5", "10/20", "nan", "-inf", "1e-4", "1,234", "17.9k", "45.1GiB", "3.4it/s"),
    *("ms", "s/it", "|████  |", "00:10<00:20", "tensor(", "np.float64(", "device='cuda:0'"),
    *("[rank0]:", "[1,0]<stdout>:", "(main_task pid=7) ", "0: ", "2026-01-02 03:04:05,678", "INFO"),
    *("Traceback (most recent call last):\n", '  File "x.py", line 3\n', "ValueError: x\n"),
    *("{'loss': 2.5}", '{"step": 3, "loss": 0.5}', "step,loss\n1,2\n", "\x1b[32m", "\x1b[0m"),
    *("Epoch 1/3\n", "[====>...]", "Total timesteps: ", "Result for x:\n", "wandb: ", ":::MLLOG "),
    *("slurmstepd: error: ", "CANCELLED AT", "Training completed", "\x00", "\xff", "train_runtime"),
]


class Broken(AssertionError):
    """An input that the reader does not stand."""


@contextlib.contextmanager
def limit(size: int) -> Iterator[None]:
    """Refuse what takes longer than its size allows; a hang is ended by an alarm."""

    def stop(*_: object) -> None:
        raise Broken(f"{size} bytes are not read after {HANG} s")

    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGALRM, stop)
        signal.alarm(HANG)
    began = time.process_time()
    try:
        yield
    finally:
        signal.alarm(0)
    took = time.process_time() - began
    if took > GRACE + SECONDS_PER_MEGABYTE * size / 2**20:
        raise Broken(f"{size} bytes took {took:.1f} s")


def text_reader(data: bytes) -> None:
    """Read one input every way there is. Raises `Broken`, or whatever the reader raises."""
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
    if len(data) > 5000:
        return
    third = len(data) // 3
    pieces = [data[:third], data[third : third + 7], data[third + 7 :]]
    if read(pieces, saved=True) != whole:
        raise Broken("pieces give another reading")
    if not CONTROL.search(data) and read([data], templates=False) != whole:
        raise Broken("templates change the reading")


def stretched(data: bytes) -> bytes:
    """An input made long, as its first byte says: what is quadratic shows only then."""
    if not data:
        return data
    how, rest = data[0] % 8, data[1:]
    if how < 5 or not rest:
        return rest
    times = LARGEST // (4 * len(rest)) + 1
    if how == 5:
        return rest * times
    if how == 6:
        return b"iter 1: loss 2.5\niter 2: loss 2.0\n" + (rest + b"\n") * times
    return rest[: len(rest) // 2] * times + rest[len(rest) // 2 :]


def mutated(seeds: list[bytes], noise: random.Random) -> bytes:
    """A seed with some of it cut, doubled, swapped or made of the words of logs."""
    data = bytearray(noise.choice(seeds)) if seeds and noise.random() < 0.7 else bytearray()
    if len(data) > 3000:
        begin = noise.randrange(len(data) - 2000)
        data = data[begin : begin + noise.randrange(200, 2000)]
    for _ in range(noise.randrange(1, 12)):
        at = noise.randrange(len(data) + 1)
        kind = noise.randrange(6)
        if kind < 3:
            text = "".join(noise.choices(WORDS, k=noise.randrange(1, 9)))
            data[at:at] = text.encode("utf-8", "surrogateescape")
        elif kind == 3:
            del data[at : at + noise.randrange(1, 40)]
        elif kind == 4:
            data[at:at] = data[at : at + noise.randrange(1, 200)] * noise.randrange(1, 4)
        elif data:
            data[at % len(data)] = noise.randrange(256)
    return bytes([noise.randrange(256)]) + bytes(data)


def seeds_of(folders: list[Path]) -> list[bytes]:
    """Files to begin with, those of the folders or lines of our own."""
    found = [
        path.read_bytes()[:50_000]
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.stat().st_size < 5_000_000
    ]
    own = "".join(f"step {i}: loss {5 - i / 9:.3f}, lr 1e-4, 3.4it/s\n" for i in range(9))
    return [*found, own.encode()]


def blindly(target: Callable[[bytes], None], seeds: list[bytes], seconds: float, out: Path) -> int:
    """Mutate until the time is over; how many inputs broke the reader."""
    seed = time.time_ns()
    noise, broken, count, end = random.Random(seed), 0, 0, time.monotonic() + seconds
    while time.monotonic() < end:
        data = mutated(seeds, noise)
        count += 1
        try:
            target(stretched(data))
        except Exception as failure:
            broken += 1
            keep(data, failure, out)
    print(f"{count} inputs (random seed {seed}), {broken} broken", flush=True)
    return broken


def keep(data: bytes, failure: Exception, out: Path) -> None:
    """Write down an input that broke the reader; `--replay FILE` reads it again."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"broken-{hashlib.sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    print(f"{type(failure).__name__}: {failure!s:.200} -> {path}", flush=True)


def guided(target: Callable[[bytes], None], seeds: list[bytes], seconds: float, out: Path) -> None:
    """Let atheris find inputs; it ends the process at the first that breaks the reader."""
    import atheris

    with atheris.instrument_imports(include=["trainwarden.metrics"]):
        import trainwarden.metrics.reader  # noqa: F401
    corpus, words = out / "corpus", out / "words.dict"
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        for begin in range(0, min(len(seed), 20_000), 2000):
            piece = b"\x00" + seed[begin : begin + 2000]
            (corpus / hashlib.sha256(piece).hexdigest()[:16]).write_bytes(piece)
    quoted = [
        "".join(f"\\x{byte:02x}" for byte in word.encode("utf-8", "surrogateescape"))
        for word in WORDS
    ]
    words.write_text("".join(f'"{word}"\n' for word in quoted))

    def once(data: bytes) -> None:
        try:
            target(stretched(data))
        except Exception as failure:
            keep(data, failure, out)
            raise

    options = [f"-max_total_time={int(seconds)}", "-max_len=4096", f"-artifact_prefix={out}/"]
    atheris.Setup([sys.argv[0], str(corpus), f"-dict={words}", "-timeout=120", *options], once)
    atheris.Fuzz()


def main() -> int:
    """Fuzz for a time; exit code 1 where an input broke the reader."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seeds", nargs="*", type=Path, help="folders of files to begin with")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--out", type=Path, default=Path("fuzz-out"))
    parser.add_argument("--blind", action="store_true", help="do without atheris")
    parser.add_argument("--replay", type=Path, help="read one kept input again")
    options = parser.parse_args()
    if options.replay is not None:
        text_reader(stretched(options.replay.read_bytes()))
        print("it stands this one")
        return 0
    seeds = seeds_of(options.seeds)
    if not options.blind:
        try:
            guided(text_reader, seeds, options.seconds, options.out)
        except ModuleNotFoundError:
            print("atheris is not installed: mutating blindly", file=sys.stderr)
        else:
            return 0
    return int(blindly(text_reader, seeds, options.seconds, options.out) > 0)


if __name__ == "__main__":
    raise SystemExit(main())
