"""MLflow's SQLite store (`mlflow.db`): of version 1 to 3, and with or without its later columns."""

from __future__ import annotations

import hashlib
import math
import sys
from typing import Any

import numpy as np

from trainwarden.evidence.stores.base import missing, number
from trainwarden.evidence.stores.sqlite import Database
from trainwarden.metrics.binary.scalars import Points
from trainwarden.metrics.stored import MAX_CONFIG, MAX_VALUE, StoreReader, Tracker

CHUNK = 20_000
MAX_KEY = 250
_RUN = (
    "SELECT run_uuid, rowid FROM runs WHERE (run_uuid = ?1 OR name = ?1{tagged}){active}"
    " ORDER BY run_uuid = ?1 DESC, start_time DESC, rowid DESC LIMIT 1"
)
_TAGGED = (
    " OR run_uuid IN (SELECT run_uuid FROM tags WHERE \"key\" = 'mlflow.runName' AND value = ?1)"
)
_NEWEST = (
    "SELECT run_uuid FROM runs r WHERE 1{active}"
    " ORDER BY EXISTS (SELECT 1 FROM {latest} m WHERE m.run_uuid = r.run_uuid) DESC,"
    " start_time DESC, rowid DESC LIMIT 1"
)
_ACTIVE = " AND lifecycle_stage IS NOT 'deleted'"
_POINTS = (
    'SELECT rowid, substr("key", 1, 250), CAST(value AS REAL), CAST(timestamp AS REAL),'
    " {step}, {is_nan} FROM metrics WHERE {which} AND rowid > ? AND rowid <= ?"
    " ORDER BY rowid LIMIT ?"
)
_ABOUT = (
    "SELECT status, CAST(start_time AS REAL), CAST(end_time AS REAL) FROM runs WHERE run_uuid = ?"
)
_PARAMS = 'SELECT substr("key", 1, 250), substr(value, 1, ?) FROM params WHERE run_uuid = ? LIMIT ?'
_LAST = 2**63 - 1


def is_mlflow(database: Database) -> bool:
    """Whether a SQLite file is a store of MLflow."""
    return {"run_uuid", "status"} <= database.columns("runs") and {
        "run_uuid",
        "key",
        "value",
    } <= database.columns("metrics")


class MlflowDatabase:
    """One run of a store: the newest one that was begun and logged something, or one by name."""

    tracker: Tracker = "mlflow"
    folder: str = ""

    def __init__(self, database: Database, run: str = "") -> None:
        self._database = database
        self._columns = database.columns("metrics")
        runs = database.columns("runs")
        active = _ACTIVE if "lifecycle_stage" in runs else ""
        if run:
            tagged = _TAGGED if database.columns("tags") else ""
            found = database.rows(_RUN.format(tagged=tagged, active=active), (run,))
        else:
            latest = "latest_metrics" if database.columns("latest_metrics") else "metrics"
            found = database.rows(_NEWEST.format(latest=latest, active=active))
        if not found and run:
            raise missing(database.path, run)
        self.run = str(found[0][0]) if found else ""

    def reads_on(self, reader: StoreReader) -> bool:
        """Whether the last row that was read is still the same: ids can be given anew."""
        row = int(reader.cursor.get("row", 0))
        return row == 0 or reader.cursor.get("was") == self._digest(row)

    def read(self, reader: StoreReader, until: int | None = None) -> None:
        """Take the rows after the last one read."""
        self._about(reader)
        while rows := self._rows(reader.position, _LAST if until is None else until, CHUNK):
            reader.take(_points(rows))
            reader.position = int(rows[-1][0])
            reader.cursor = {"row": reader.position, "was": _digest_of(rows[-1])}
            if len(rows) < CHUNK:
                break

    def _rows(self, after: int, until: int, most: int) -> list[tuple[Any, ...]]:
        query = _query("run_uuid = ?", self._columns)
        return self._database.rows(query, (self.run, after, until, most))

    def _digest(self, row: int) -> str:
        rows = self._rows(row - 1, row, 1)
        return _digest_of(rows[0]) if rows else ""

    def _about(self, reader: StoreReader) -> None:
        rows = self._database.rows(_ABOUT, (self.run,))
        params = {}
        if self._database.columns("params"):
            some = self._database.rows(_PARAMS, (MAX_VALUE, self.run, MAX_CONFIG))
            params = {str(key): number(str(value)) for key, value in some}
        if rows:
            status, begun, ended = rows[0]
            reader.about(str(status), params, _seconds(begun), _seconds(ended))


def row_text(database: Database, row: int) -> str | None:
    """What stands in a row of the metrics, None where there is none."""
    query = _query("? IS NOT NULL", database.columns("metrics"))
    rows = database.rows(query, ("", row - 1, row, 1))
    if not rows:
        return None
    point = _points(rows)[0]
    stamp = f", timestamp {rows[0][3]:.0f}" if rows[0][3] is not None else ""
    return f"{point.tag} = {float(point.values[0])!r} at step {point.steps[0]:.0f}{stamp}"


def _query(which: str, columns: frozenset[str]) -> str:
    """Metrics of some rows: old stores have neither steps nor a mark of NaN."""
    step = "CAST(step AS REAL)" if "step" in columns else "0.0"
    return _POINTS.format(which=which, step=step, is_nan="is_nan" if "is_nan" in columns else "0")


def _seconds(milliseconds: Any) -> float | None:
    return milliseconds / 1000 if isinstance(milliseconds, float) else None


def _digest_of(row: tuple[Any, ...]) -> str:
    return hashlib.sha256(repr(row).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _points(rows: list[tuple[Any, ...]]) -> list[Points]:
    """Points by name, in the order in which the names came up."""
    ids, keys, values, times, steps, nans = zip(*rows, strict=True)
    numbers: dict[str, int] = {}
    names = np.array([numbers.setdefault(str(key), len(numbers)) for key in keys])
    offsets = np.array(ids, np.int64)
    value = np.array(values, np.float64)
    value[np.array([bool(nan) for nan in nans])] = math.nan
    # Infinite ones are kept as the largest there are.
    value[value >= sys.float_info.max] = math.inf
    value[value <= -sys.float_info.max] = -math.inf
    time = np.array(times, np.float64) / 1000
    step = np.nan_to_num(np.array(steps, np.float64))
    order = np.argsort(names, kind="stable")
    cuts = np.searchsorted(names[order], np.arange(len(numbers) + 1))
    found = []
    for name, number_ in numbers.items():
        at = order[cuts[number_] : cuts[number_ + 1]]
        found.append(Points(name, offsets[at], step[at], value[at], time[at]))
    return found
