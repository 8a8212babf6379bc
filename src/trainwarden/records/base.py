"""What every record shares: strictness, and numbers that survive JSON."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Annotated, Any

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
)

MOST = 10**300
_NONFINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def to_json_number(value: Any) -> Any:
    """A float as JSON can hold it: NaN and infinities become "nan", "inf", "-inf"."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def from_json_number(value: Any) -> Any:
    """The inverse of `to_json_number`; anything else passes unchanged.

    Raises ValueError for whole numbers that no float can hold.
    """
    if isinstance(value, int) and abs(value) > MOST:
        raise ValueError("the number is too large")
    return _NONFINITE.get(value, value) if isinstance(value, str) else value


Real = Annotated[
    float, BeforeValidator(from_json_number), PlainSerializer(to_json_number, when_used="json")
]
"""A float that may be NaN or infinite."""

Scalar = Annotated[
    bool | int | float | str,
    BeforeValidator(from_json_number),
    PlainSerializer(to_json_number, when_used="json"),
]
"""A single value of an observation."""

Finite = Annotated[float, BeforeValidator(from_json_number), Field(allow_inf_nan=False)]
"""A float that is a number."""

Step = Annotated[int, Field(ge=0, le=10**15)]
"""A step of a run that is to come."""

Moment = AwareDatetime
"""A time with its zone; all are written in UTC."""


class Record(BaseModel):
    """An immutable, strict record: unknown fields are errors."""

    # A command uses few of the records, so each is built when it is first used.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class OpenRecord(BaseModel):
    """A record of a file that newer versions or other writers may extend: unknown fields stay."""

    model_config = ConfigDict(extra="allow", defer_build=True)


def isoformat(moment: datetime) -> str:
    """Seconds are enough for people; UTC is marked by Z."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
