"""What was read of a log, kept between sessions: the reader's state and where it stands."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trainwarden.evidence.follow import Followed
from trainwarden.evidence.opened import Kept, Position
from trainwarden.metrics.formats import LineFormat
from trainwarden.metrics.readers import reader_from
from trainwarden.metrics.reading import Piece

CACHE_VERSION = 2


def cache_file(cache_dir: Path, job: str, path: Path) -> Path:
    """Where the reading of one log of a job is kept."""
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
    return cache_dir / f"{job}.{digest}.reading.json"


def save(file: Path, followed: Followed) -> None:
    """Write a reading atomically. Raises OSError."""
    data = {
        "version": CACHE_VERSION,
        "position": vars(followed.position),
        "complete": followed.complete,
        "settled": followed.settled,
        "over": followed.over,
        "pieces": [[*one.piece, one.fingerprint, one.fingerprint_length] for one in followed.kept],
        "remarks": followed.remarks,
        "problems": followed.problems,
        "reader": followed.reader.to_state(),
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(data, stream, separators=(",", ":"))
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def load(file: Path, formats: Sequence[LineFormat] | None = None) -> Followed | None:
    """What `save` wrote, or None where there is nothing. Raises ValueError where it is damaged."""
    try:
        data: dict[str, Any] = json.loads(file.read_bytes())
        if data["version"] != CACHE_VERSION:
            raise ValueError(f"reading cache of version {data['version']!r}")
        return Followed(
            reader_from(data["reader"], formats),
            Position(**data["position"]),
            complete=bool(data.get("complete", True)),
            settled=bool(data["settled"]),
            over=bool(data.get("over")),
            kept=tuple(
                Kept(Piece(str(name), int(begin), int(skipped)), str(digest), int(length))
                for name, begin, skipped, digest, length in data.get("pieces", ())
            ),
            remarks=tuple(map(str, data.get("remarks", ()))),
            problems=tuple(map(str, data.get("problems", ()))),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"{file}: {type(error).__name__}: {error}") from error


def set_aside(file: Path) -> None:
    """Keep a damaged cache beside its name, out of the way."""
    try:
        file.replace(file.with_suffix(f".corrupt-{int(time.time())}"))
    except OSError:
        return
