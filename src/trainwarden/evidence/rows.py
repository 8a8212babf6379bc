"""Reading the rows that earlier sessions left of what no log keeps."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any


def unix_seconds(moment: Any) -> float | None:
    """Unix seconds of a row's time: a datetime, an ISO text or a number; None for another."""
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment.replace("Z", "+00:00"))
        except ValueError:
            return None
    if isinstance(moment, datetime):
        return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()
    if isinstance(moment, (int, float)) and not isinstance(moment, bool):
        return float(moment)
    return None
