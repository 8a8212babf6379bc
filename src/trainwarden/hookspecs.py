"""What other packages can add: entry points of the group `trainwarden`, called through pluggy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pluggy

hookspec = pluggy.HookspecMarker("trainwarden")
hookimpl = pluggy.HookimplMarker("trainwarden")


@hookspec
def trainwarden_log_formats() -> Sequence[Any]:  # type: ignore[empty-body]
    """Log formats (`metrics.formats.base.LineFormat`), tried before the built-in ones."""


@hookspec
def trainwarden_sources() -> Sequence[Any]:  # type: ignore[empty-body]
    """Evidence sources (`evidence.base.Source`), read beside the built-in ones."""


@hookspec
def trainwarden_detectors() -> Sequence[Any]:  # type: ignore[empty-body]
    """Detectors of findings, run after the built-in ones."""
