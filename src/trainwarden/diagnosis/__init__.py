"""Series and observations to findings: pure."""

from __future__ import annotations

from trainwarden.diagnosis.base import View
from trainwarden.records.finding import Finding

__all__ = ["View", "diagnose"]


def diagnose(view: View) -> list[Finding]:
    """All findings of a view, numbered F1, F2, … in causal order, causes first.

    A detector that fails on odd data costs its own findings only; the others are kept.
    """
    from trainwarden.diagnosis.causal import in_causal_order
    from trainwarden.diagnosis.detectors import all_detectors

    found: list[Finding] = []
    for detector in all_detectors():
        try:
            found.extend(detector(view))
        except Exception as error:  # odd data, or a plug-in of a stranger
            _log_failure(detector, error)
    return in_causal_order(view, found)


def _log_failure(detector: object, error: Exception) -> None:
    import logging

    name = getattr(detector, "__name__", detector)
    logging.getLogger(__name__).warning("%s failed, its findings are missing: %r", name, error)
