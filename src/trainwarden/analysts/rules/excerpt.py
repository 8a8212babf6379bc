"""The status of an excerpt that is too short for a test of progress.

People post the few lines that worry them. Where these look like a fault and are none, and the run
goes on in them, HEALTHY says what is known. A watch never judges so: it can wait for more, and
what HEALTHY owes there is a tested course (`procedure/progress.py`).
"""

from __future__ import annotations

from trainwarden.diagnosis.lookalikes import is_explained
from trainwarden.metrics.reading import Reading
from trainwarden.procedure.roles import Briefing
from trainwarden.records.assessment import Assessment, Status
from trainwarden.records.finding import Severity

GOING_ON = 2
"""Steps that follow one another show a run that goes on."""
PASSING = frozenset({"loss_spike", "nan_loss"})
"""Kinds that as information tell of what has passed: a spike that recovered, a single overflow."""


def of_excerpt(briefing: Briefing, assessed: Assessment) -> Assessment:
    """The assessment, with HEALTHY for UNCERTAIN where an explained look-alike is all there is."""
    explained = [finding for finding in briefing.findings if is_explained(finding)]
    loud = any(finding.severity is not Severity.INFO for finding in briefing.findings)
    if assessed.status is not Status.UNCERTAIN or not explained or loud:
        return assessed
    steps = max(map(_steps, briefing.readings), default=0)
    if steps < GOING_ON or any(
        one.ended in ("crashed", "interrupted") for one in briefing.readings
    ):
        return assessed
    cited = tuple(dict.fromkeys(name for one in explained for name in one.observations))
    first = explained[0]
    return Assessment(
        status=Status.HEALTHY,
        indicator=assessed.indicator,
        expected=assessed.expected,
        baseline=assessed.baseline,
        reasoning=f"{first.summary.rstrip('.')} [{first.id}]. {first.meaning} The run goes on in "
        f"what was given, and nothing above information was found. Whether it learns is more than "
        f"these few lines can tell: {' '.join(first.alternatives) or 'look again later'}.",
        progress=cited,
    )


def _steps(reading: Reading) -> int:
    """Steps that are seen to follow one another: logged, or told to be skipped."""
    logged = max(
        (len({point.step for point in one.recent}) for one in reading.series.values()), default=0
    )
    return max(logged, sum(event.kind == "overflow" for event in reading.events))
