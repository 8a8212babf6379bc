"""Sources that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator

from trainwarden.diagnosis.base import View
from trainwarden.records.finding import Finding, Severity
from trainwarden.records.hostile import clean


def detect_disagreement(view: View) -> Iterator[Finding]:
    """Each disagreement between sources, the lower-level one believed."""
    for one in view.disagreements:
        ids = tuple(i for i in (one.believed, one.doubted) if i in view.observations)
        if not ids:
            continue
        vital = one.quantity.startswith(("process.", "log.ended"))
        yield Finding(
            kind="source_disagreement",
            severity=Severity.WARNING if vital and view.live else Severity.INFO,
            observations=ids,
            summary=f"Sources disagree on {one.quantity}: {clean(one.remark)}",
            meaning="The lower-level source is believed; the other may be late or broken.",
            alternatives=("They were read at different moments",),
            first_action="Read both again at the same moment.",
            evidence_type="observation",
            confidence=0.9,
        )
