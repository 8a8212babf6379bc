"""A job: one training run, by what it trains and how, never by a process."""

from __future__ import annotations

import hashlib
import re
from pathlib import PurePath

from trainwarden.records.base import Record


class Job(Record):
    """One training run. All paths are absolute."""

    id: str
    config: str | None = None
    model: str | None = None
    logs: tuple[str, ...] = ()
    guidance: str | None = None
    """What the user said about the run."""


def job_id(config: str | None, model: str | None, log: str | None = None) -> str:
    """Make an id from the config's and the model's path, stable across restarts.

    With neither, the log's path stands in. Raises ValueError when nothing is given.
    """
    identity = [config or "", model or ""] if config or model else ["", "", log or ""]
    if not any(identity):
        raise ValueError("a job needs a config, a model or a log")
    named = PurePath(config or model or log or "")
    stem = named.stem if named.stem not in {"config", "train", "log", "output"} else ""
    label = "-".join(part for part in (named.parent.name, stem) if part)
    slug = re.sub(r"[^A-Za-z0-9]+", "-", label).strip("-").lower()[:48] or "job"
    # Linux paths are bytes: those that are no UTF-8 come with surrogates in their place.
    digest = hashlib.sha256(chr(0).join(identity).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{slug}-{digest[:10]}"
