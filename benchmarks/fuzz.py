"""Hostile files for the readers: `python benchmarks/fuzz.py [--reader R] [--seconds N] [FOLDER …]`.

Each input is read whole, in pieces, and saved and restored on the way (`fuzz_targets.py`): it must
not raise, must give the same reading each way, and must take no longer, and no more memory, than
its size allows. Where atheris is installed it guides the inputs by what code they reach
(`pip install atheris`); else they are mutated blindly. What broke is written to `--out`.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import random
import resource
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from fuzz_targets import SECONDS_PER_MEGABYTE, TARGETS, Broken, Target

GRACE = 1.0
HANG = 60
LARGEST = 1 << 18
MEMORY = 1 << 18
"""KiB that one input may add to the largest resident size."""


@contextlib.contextmanager
def limit(size: int) -> Iterator[None]:
    """Refuse what takes longer, or more memory, than its size allows; an alarm ends a hang."""

    def stop(*_: object) -> None:
        raise Broken(f"{size} bytes are not read after {HANG} s")

    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGALRM, stop)
        signal.alarm(HANG)
    began, peak = time.process_time(), _peak()
    try:
        yield
    finally:
        signal.alarm(0)
    took = time.process_time() - began
    if took > GRACE + SECONDS_PER_MEGABYTE * size / 2**20:
        raise Broken(f"{size} bytes took {took:.1f} s")
    if (more := _peak() - peak) > MEMORY:
        raise Broken(f"{size} bytes took {more >> 10} MiB of memory")


def _unlimited(_size: int) -> contextlib.AbstractContextManager[None]:
    """Instead of `limit`, while what is needed is imported."""
    return contextlib.nullcontext()


def _peak() -> int:
    """The largest resident size of this process so far, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


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


def mutated(seeds: list[bytes], words: list[bytes], noise: random.Random) -> bytes:
    """A seed with some of it cut, doubled, swapped or made of the words of its kind."""
    data = bytearray(noise.choice(seeds)) if seeds and noise.random() < 0.7 else bytearray()
    if len(data) > 3000:
        begin = noise.randrange(len(data) - 2000)
        data = data[begin : begin + noise.randrange(200, 2000)]
    for _ in range(noise.randrange(1, 12)):
        at = noise.randrange(len(data) + 1)
        kind = noise.randrange(6)
        if kind < 3:
            data[at:at] = b"".join(noise.choices(words, k=noise.randrange(1, 9)))
        elif kind == 3:
            del data[at : at + noise.randrange(1, 40)]
        elif kind == 4:
            data[at:at] = data[at : at + noise.randrange(1, 200)] * noise.randrange(1, 4)
        elif data:
            data[at % len(data)] = noise.randrange(256)
    return bytes([noise.randrange(256)]) + bytes(data)


def words_of(target: Target) -> list[bytes]:
    """What inputs for it are made of."""
    return [
        word if isinstance(word, bytes) else word.encode("utf-8", "surrogateescape")
        for word in target.words
    ]


def seeds_of(target: Target, folders: list[Path]) -> list[bytes]:
    """Inputs to begin with: files of its kind in the folders, and its own."""
    found = [
        taken[:50_000]
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.stat().st_size < 5_000_000
        if (taken := target.takes(path, path.read_bytes())) is not None
    ]
    return [*found, *target.seeds]


def blindly(target: Target, seeds: list[bytes], seconds: float, out: Path) -> int:
    """Mutate until the time is over; how many inputs broke the reader."""
    seed = time.time_ns()
    target.check(target.seeds[0], _unlimited)
    words = words_of(target)
    noise, broken, count, end = random.Random(seed), 0, 0, time.monotonic() + seconds
    while time.monotonic() < end:
        data = mutated(seeds, words, noise)
        count += 1
        try:
            target.check(stretched(data), limit)
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


def guided(target: Target, seeds: list[bytes], seconds: float, out: Path) -> None:
    """Let atheris find inputs; it ends the process at the first that breaks the reader."""
    import atheris

    with atheris.instrument_imports(include=list(target.modules)):
        target.check(target.seeds[0], _unlimited)
    corpus, words = out / "corpus", out / "words.dict"
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        # The first byte of an input for a run file or a config says what it is.
        first = seed[:1] if target.seeds[0][0] < 32 else b""
        for begin in range(0, min(len(seed), 20_000), 2000):
            piece = b"\x00" + (first if begin else b"") + seed[begin : begin + 2000]
            (corpus / hashlib.sha256(piece).hexdigest()[:16]).write_bytes(piece)
    quoted = ["".join(f"\\x{byte:02x}" for byte in word) for word in words_of(target)]
    words.write_text("".join(f'"{word}"\n' for word in quoted))

    def once(data: bytes) -> None:
        try:
            target.check(stretched(data), limit)
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
    parser.add_argument("--reader", choices=TARGETS, default="text", help="what is fed")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--out", type=Path, default=Path("fuzz-out"))
    parser.add_argument("--blind", action="store_true", help="do without atheris")
    parser.add_argument("--replay", type=Path, help="read one kept input again")
    options = parser.parse_args()
    target = TARGETS[options.reader]
    if options.replay is not None:
        target.check(stretched(options.replay.read_bytes()), limit)
        print("it stands this one")
        return 0
    seeds = seeds_of(target, options.seeds)
    if not options.blind:
        try:
            guided(target, seeds, options.seconds, options.out)
        except ModuleNotFoundError:
            print("atheris is not installed: mutating blindly", file=sys.stderr)
        else:
            return 0
    return int(blindly(target, seeds, options.seconds, options.out) > 0)


if __name__ == "__main__":
    raise SystemExit(main())
