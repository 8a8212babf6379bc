"""Trackio's SQLite store (`<project>.db`): what a call logged is a row, as JSON."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import orjson

from trainwarden.evidence.stores.base import missing
from trainwarden.evidence.stores.sqlite import Database
from trainwarden.metrics.binary.items import plain
from trainwarden.metrics.stored import Row, StoreReader, Tracker

CHUNK = 2000
LONGEST = 1 << 20
"""Bytes of a row that is read."""
_ROWS = (
    "SELECT id, CAST(step AS REAL), substr(timestamp, 1, 64),"
    " CASE WHEN length(metrics) <= ? THEN metrics END FROM metrics"
    # The plus keeps SQLite from sorting a whole run for each piece of it.
    " WHERE +{key} = ? AND id > ? AND id <= ? ORDER BY id LIMIT ?"
)
_NEWEST = "SELECT {key}, min(id) FROM metrics GROUP BY {key} ORDER BY 2 DESC LIMIT 1"
_NAMED = (
    "SELECT {key}, min(id) FROM metrics WHERE {key} = ?1 OR run_name = ?1"
    " GROUP BY {key} ORDER BY {key} = ?1 DESC, 2 DESC LIMIT 1"
)
_CONFIG = "SELECT substr(config, 1, ?) FROM configs WHERE {key} = ? ORDER BY id DESC LIMIT 1"
_LAST = 2**63 - 1


def is_trackio(database: Database) -> bool:
    """Whether a SQLite file is a store of Trackio."""
    return {"id", "run_name", "step", "metrics"} <= database.columns("metrics")


class Trackio:
    """One run of a project: the newest one that was begun, or one by id or name."""

    tracker: Tracker = "trackio"
    folder: str = ""

    def __init__(self, database: Database, run: str = "") -> None:
        self._database = database
        # Older projects know runs by name alone.
        self._key = "run_id" if "run_id" in database.columns("metrics") else "run_name"
        query = (_NAMED if run else _NEWEST).format(key=self._key)
        found = database.rows(query, (run,) if run else ())
        if not found and run:
            raise missing(database.path, run)
        self.run, self._first = (str(found[0][0]), int(found[0][1])) if found else ("", 1)

    def reads_on(self, reader: StoreReader) -> bool:
        """Whether the last row that was read is still there."""
        row = int(reader.cursor.get("row", 0))
        rows = self._rows(row - 1, row, 1)
        return row == 0 or (bool(rows) and reader.cursor.get("was") == _digest(rows[0]))

    def read(self, reader: StoreReader, until: int | None = None) -> None:
        """Take the rows after the last one read."""
        reader.about("", self._config())
        while rows := self._rows(
            max(reader.position, self._first - 1), _LAST if until is None else until, CHUNK
        ):
            reader.rows(list(_decoded(rows, reader)))
            reader.position = int(rows[-1][0])
            reader.cursor = {"row": reader.position, "was": _digest(rows[-1])}
            if len(rows) < CHUNK:
                break

    def _rows(self, after: int, until: int, most: int) -> list[tuple[Any, ...]]:
        query = _ROWS.format(key=self._key)
        return self._database.rows(query, (LONGEST, self.run, after, until, most))

    def _config(self) -> dict[str, Any]:
        columns = self._database.columns("configs")
        if not {"config", self._key} <= columns:
            return {}
        found = self._database.rows(_CONFIG.format(key=self._key), (LONGEST, self.run))
        told = _loaded(found[0][0]) if found else None
        return {k: v for k, v in told.items() if k[:1] != "_"} if isinstance(told, dict) else {}


def row_text(database: Database, row: int) -> str | None:
    """What stands in a row of the metrics, None where there is none."""
    rows = database.rows(_ROWS.format(key="0"), (LONGEST, 0, row - 1, row, 1))
    if not rows:
        return None
    _id, step, time, logged = rows[0]
    told = logged.decode("utf-8", "replace") if isinstance(logged, bytes) else str(logged)
    return f"step {step or 0:.0f}: {told}, timestamp {time}"


def _decoded(rows: Iterable[tuple[Any, ...]], reader: StoreReader) -> Iterable[Row]:
    for row, step, time, logged in rows:
        told = _loaded(logged)
        if isinstance(told, dict):
            yield int(row), step, _seconds(time), told
        else:
            reader.note("rows that are no JSON, or too long, passed over")


def _loaded(encoded: Any) -> Any:
    """What JSON says, None where it is none; `NaN` may stand there as Python writes it."""
    if not isinstance(encoded, (bytes, str)):
        return None
    try:
        return orjson.loads(encoded)
    except ValueError:
        return plain(encoded if isinstance(encoded, str) else encoded.decode("utf-8", "replace"))


def _seconds(time: Any) -> float:
    """Unix seconds of a time in ISO format, NaN where it is none."""
    try:
        # Old versions write the local time, without a zone.
        return datetime.fromisoformat(str(time).replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError, OSError):
        return math.nan


def _digest(row: tuple[Any, ...]) -> str:
    return hashlib.sha256(repr(row).encode("utf-8", "surrogateescape")).hexdigest()[:16]
