from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwarden.procedure.grounding import Citable
from trainwarden.records.assessment import Criterion
from trainwarden.records.observation import Observation, Trust


def seen(name: str, value: object, step: int | None = None, text: str | None = None) -> Observation:
    return Observation(
        id=name, quantity="q", value=value, step=step, source="log", trust=Trust.LOG, text=text
    )


CITABLE = Citable(
    [
        seen("E1", 1.4839, step=1200),
        seen("E2", 4.2104, step=0),
        seen("E3", 0.9312),
        seen("E4", 8589934592),
        seen("E5", float("nan"), step=17),
        seen("E6", "running", text="step 77 | loss 3.25"),
        seen("E7", 0.0332),
        seen("E8", -2.5e-5),
    ],
    [Criterion(id="C1", name="baseline_loss", value=4.158883, source="ln(vocab_size)")],
)


@pytest.mark.parametrize(
    "text",
    [
        "The loss is 1.48 [E1] at step 1200.",
        "The loss is 1.4839 [E1], from 4.21 [E2] at the beginning.",
        "It fell by 2.73, from [E2] to [E1].",
        "It fell by 65% [E1, E2].",
        "It is 2.8 times lower [E2][E1].",
        "GPU 3 draws 93% of its limit [E3].",
        "It uses 8 GiB [E4], or 8.6 GB [E4], or 8589934592 [E4].",
        "The loss became NaN at step 17 [E5].",
        "It printed loss 3.25 at step 77 [E6].",
        "A step takes 33 ms [E7] or 33.2 ms [E7].",
        "It is about ~1.5 [E1].",
        "A guess would score 4.16 [C1].",
        "More than 3 times the median is called a spike [rule].",
        "No number at all, on GPU 0 and rank 3 since 2026-12-01T10:00:00Z at 10:05.",
        "fp16 and int8 with eval_loss_2 are names.",
        "The slope is -2.5e-05 [E8].",
        "It fell at 2.5e-05 per step [E8].",
        "The step is 1,200 [E1].",
        "It draws 93 percent of its limit [E3].",
        "H100 and fp16, commit 9f3a12b of v2.1.3, with ckpt_1300 as a name.",
        "A step takes 33ms [E7], which is _0.0332_ s [E7].",
        "The loss of 1.48 [E1] lies above what should be 1.2 at most [rule].",
    ],
)
def test_accepts_what_the_cited_items_say(text: str) -> None:
    assert CITABLE.complaints("reasoning", text) == []


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("The loss is 1.48 at last.", "1.48"),
        ("The loss is 1.49 [E1].", "1.49"),
        ("The loss is 1.48 [E2].", "1.48"),
        ("The loss is 1.5 [E2]. It was 1.48 [E1].", "1.5"),
        ("It is at step 1300 [E1].", "1300"),
        ("The loss fell by 80% [E1, E2].", "80%"),
        ("GPU 3 draws 97% [E3].", "97%"),
        ("It uses 9 GiB [E4].", "9 GiB"),
        ("A loss of 1.48 [E1]\nand 7.7 elsewhere.", "7.7"),
        ("It is 3x lower [E3].", "3"),
        ("It lost \u00bd of it [E3].", "1"),
        ("We have loss1.23 now [E3].", ".23"),
        ("It is at step1300 [E1].", "1300"),
        ("It has loss=.38 [E1].", ".38"),
        ("It took 1300steps [E3].", "1300"),
        ("GPU 95% busy [E3].", "95%"),
        ("The loss is 0 [E3].", "0"),
        ("The loss is 0.9 now [rule].", "0.9"),
        ("It is 0.95 [E3][rule].", "0.95"),
        ("It is at step 1_300 [E1].", "1_300"),
        ("A loss (7.7) was seen [E1].", "7.7"),
        ("A loss of \u0667.\u0667 was seen [E1].", "\u0667.\u0667"),
        ("Its slope is +2.5e-05 [E8].", "+2.5e-05"),
        ("Now rank 3.5 has it [E3].", "3.5"),
        ("The loss is 2.84 [E1, E2].", "2.84"),
        ("The loss is 1.48 [E1][E2][E3][E4][E5][E6][E7][E8][C1].", "split it"),
        ("It printed 3 at the end [E6].", "3"),
    ],
)
def test_refuses_a_number_without_a_source_and_names_it(text: str, number: str) -> None:
    complaints = CITABLE.complaints("reasoning", text)
    assert len(complaints) == 1
    assert number in complaints[0]


def test_numbers_that_cite_nothing_are_told_in_one_line() -> None:
    (told,) = CITABLE.complaints("reasoning", "It rose from 0.66 to 12.15. Now it is 7.7.")
    assert "the numbers 0.66, 12.15, 7.7 have no source" in told


def test_refuses_a_citation_of_nothing() -> None:
    assert "[E99]" in CITABLE.complaints("reasoning", "It is fine [E99].")[0]


@given(st.floats(-1e300, 1e300), st.integers(1, 9))
def test_a_value_rounded_as_written_is_grounded(value: float, digits: int) -> None:
    citable = Citable([seen("E1", value)])
    assert citable.complaints("r", f"It is {value:.{digits}g} [E1] now.") == []


@given(st.text(max_size=400))
def test_never_raises(text: str) -> None:
    CITABLE.complaints("r", text)
