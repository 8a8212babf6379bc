"""What a reviewer says of steps 1 to 5."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from trainwarden.records.base import Record, Scalar


class Check(Record):
    """One thing the reviewer checked."""

    name: str
    passed: bool
    remark: str = ""


class Reread(Record):
    """A load-bearing observation, read again from its source by the reviewer."""

    observation: str
    found: Scalar | None
    agrees: bool
    how: str = Field(min_length=1, max_length=4_000)


class Learning(Record):
    """Something worth keeping, for this job or for all."""

    scope: Literal["job", "all"]
    text: str = Field(min_length=1, max_length=2_000)


def _as_text(seal: object) -> object:
    """YAML takes a seal that happens to have decimal digits alone for a number."""
    return str(seal) if type(seal) is int else seal


class Review(Record):
    """A verdict on exactly the gates whose seals it names."""

    reviewer: str = Field(min_length=1)
    verdict: Literal["approve", "reject"]
    seals: dict[str, Annotated[str, BeforeValidator(_as_text)]]
    """Step name (`predict` … `resources`) to the seal of the gate reviewed."""
    reread: tuple[Reread, ...] = Field(min_length=1)
    checks: tuple[Check, ...] = ()
    objections: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()
    learnings: tuple[Learning, ...] = ()
