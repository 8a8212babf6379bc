"""Predictions, and how they fared."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field, model_validator

from trainwarden.records.base import OpenRecord, Real, Record, Scalar


class Prediction(Record):
    """A quantity, what is expected of it, how sure, and on what basis.

    Exactly one of an interval (`low`, `high`, inclusive; either may be left out for a one-sided
    one) and a set (`one_of`) is given. `level` is the probability with which it should hold.
    """

    id: str = ""
    quantity: str = Field(min_length=1, max_length=200)
    stat: str = Field(default="last", max_length=200)
    subject: str | None = Field(default=None, max_length=400)
    low: Real | None = None
    high: Real | None = None
    one_of: Annotated[tuple[Scalar, ...], Field(min_length=1, max_length=100)] | None = None
    unit: str | None = None
    level: Annotated[float, Field(gt=0, lt=1)]
    basis: str = Field(min_length=1, max_length=4_000)

    @model_validator(mode="after")
    def _one_form(self) -> Prediction:
        has_interval = self.low is not None or self.high is not None
        if has_interval == (self.one_of is not None):
            raise ValueError("give either low/high or one_of")
        if math.isnan(self.low or 0.0) or math.isnan(self.high or 0.0):
            raise ValueError("low and high are numbers")
        if self.low == math.inf or self.high == -math.inf:
            raise ValueError("no number lies in that interval")
        if self.low is not None and self.high is not None and not self.low <= self.high:
            raise ValueError(f"low {self.low} is above high {self.high}")
        return self


class Comparison(Record):
    """One prediction against what was seen."""

    prediction: str
    quantity: str
    observation: str | None
    """Id of the observation it was held against; None where the quantity was not seen."""
    actual: Scalar | None
    outcome: Literal["held", "missed", "unobserved"]
    miss: Real | None = None
    """How far outside, in widths of the interval (None for sets and one-sided intervals)."""
    remark: str = ""


class Calibration(OpenRecord):
    """The record of all predictions of one quantity of a job."""

    made: int = 0
    held: int = 0
    missed: int = 0
    unobserved: int = 0
    expected: float = 0.0
    """Sum of the levels of those observed: what `held` would be if well calibrated."""
    miss_total: float = 0.0
    """Sum of `miss` over those missed, in widths of their intervals."""
