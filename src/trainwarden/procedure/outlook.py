"""How far a run is and how long it still has, from what was observed: pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from trainwarden.procedure.duties import last_step
from trainwarden.records.base import to_json_number
from trainwarden.records.observation import Observation


def last_value(observations: Iterable[Observation], quantity: str) -> Any:
    """The last value of a metric by its most trusted source, as JSON can hold it."""
    matching = [o for o in observations if o.quantity == quantity and o.stat == "last"]
    if not matching:
        return None
    return to_json_number(max(matching, key=lambda item: (item.trust, item.step or 0)).value)


def how_far(observations: Iterable[Observation], total: int | None) -> dict[str, Any]:
    """Step, total, how the log ended, and the seconds left at the present pace.

    The time left is None where the run has ended, or where no pace or length is known.
    """
    seen: Sequence[Observation] = list(observations)
    step, ended = last_step(seen), last_value(seen, "log.ended") or "unknown"
    alive, pace = last_value(seen, "process.alive"), last_value(seen, "step_time")
    left = None
    if ended == "running" and alive is not False and step is not None and total and total > step:
        usable = isinstance(pace, (int, float)) and 0 < pace < 86_400
        left = round((total - step) * pace, 1) if usable else None
    return {"step": step, "total_steps": total, "ended": ended, "eta_seconds": left}
