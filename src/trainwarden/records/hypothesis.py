"""Hypotheses that can fail, and the plan made of the chosen one."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from trainwarden.records.assessment import Text
from trainwarden.records.base import Finite, Moment, Record, Step

Outcome = Literal["CONFIRMED", "REFUTED", "INCONCLUSIVE"]


class Measure(Record):
    """A criterion that a later session can check by itself: quantity, comparison, threshold."""

    quantity: str
    comparison: Literal["<", "<=", ">", ">="]
    threshold: Finite


class When(Record):
    """The moment at which something is due: a step, a time, or whichever comes first."""

    step: Step | None = None
    time: Moment | None = None

    @model_validator(mode="after")
    def _something(self) -> When:
        if self.step is None and self.time is None:
            raise ValueError("evaluate_after needs a step or a time")
        return self


class Hypothesis(Record):
    """One explanation with the action that would test it, and how it could turn out false."""

    id: str = ""
    dimension: Annotated[str, Field(min_length=1)]
    """What it is about (data, optimiser, hardware, …); those of one session differ in it."""
    statement: Text
    action: Text
    expected_outcome: Text
    failure_criterion: Text
    counter_hypothesis: Text
    """Another mechanism that would look the same."""
    cost: Text
    learnt_if_confirmed: Text
    learnt_if_refuted: Text
    success: Measure | None = None
    failure: Measure | None = None
    evaluate_after: When | None = None
    """When it is due; the runtime takes it from the strategy that chose it."""


class HypothesisScore(Record):
    """How a due hypothesis turned out."""

    hypothesis: str
    outcome: Outcome
    observations: tuple[str, ...] = ()
    reasoning: Text


class Plan(Record):
    """What is done next, and how it will be known to have worked."""

    actions: tuple[Text, ...] = Field(min_length=1)
    success_criteria: tuple[Text, ...] = Field(min_length=1)
    failure_criteria: tuple[Text, ...] = Field(min_length=1)


class Strategy(Record):
    """Step 8: due hypotheses scored, new ones proposed, one chosen, a plan made."""

    scores: tuple[HypothesisScore, ...] = ()
    hypotheses: tuple[Hypothesis, ...] = ()
    chosen: Annotated[str, Field(coerce_numbers_to_str=True)] | None = None
    chosen_by: Literal["user", "analyst"] = "analyst"
    plan: Plan
    evaluate_after: When
