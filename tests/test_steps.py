"""The step texts: what they show as input is what the runtime takes."""

import re
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter

from support.answers import hypothesis
from trainwarden.procedure import auditing, duties, foresight, planning
from trainwarden.procedure.grounding import CITATION, Citable
from trainwarden.records.assessment import Assessment, Criterion, Status, Troubleshooting
from trainwarden.records.finding import CEILINGS, Finding, FindingKind, Severity
from trainwarden.records.hypothesis import Strategy
from trainwarden.records.observation import Observation, Trust
from trainwarden.records.prediction import Prediction
from trainwarden.records.review import Review
from trainwarden.records.session import STEPS

FOLDER = Path(__file__).parents[1] / "steps"
COMMANDS = {
    "predict": "predict",
    "collect": "collect",
    "compare": "compare",
    "metrics": "assess",
    "resources": "resources",
    "review": "review",
    "troubleshoot": "troubleshoot",
    "strategy": "strategize",
    "summary": "finish",
}


def text(step: str) -> str:
    return (FOLDER / f"{STEPS.index(step) + 1}-{step}.md").read_text(encoding="utf-8")


def examples(step: str) -> list[Any]:
    return [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text(step), re.S)]


def test_one_text_a_step_and_no_other() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == [
        f"{number}-{step}.md" for number, step in enumerate(STEPS, 1)
    ]


@pytest.mark.parametrize("step", STEPS)
def test_each_text_says_why_first_and_what_to_do_when_refused(step: str) -> None:
    headings = re.findall(r"^## (.+)$", text(step), re.M)
    assert headings[0] == "Why"
    assert headings[-1] == "When it is refused"
    assert {"What the runtime enforces", "Common mistakes"} <= set(headings)
    assert f"`trainwarden {COMMANDS[step]}`" in text(step)
    assert len(text(step).splitlines()) < 120


def test_predictions_are_complete() -> None:
    (example,) = examples("predict")
    predictions = TypeAdapter(tuple[Prediction, ...]).validate_python(example)
    assert foresight.prediction_complaints(predictions) == []


def test_assessments_of_all_statuses() -> None:
    whole, *others = examples("metrics")
    shared = {name: value for name, value in whole.items() if name != "progress"}
    found = [Assessment.model_validate(part) for part in (whole, *(shared | o for o in others))]
    assert [item.status for item in found] == [
        Status.HEALTHY,
        Status.CRITICAL,
        Status.WARNING,
        Status.UNCERTAIN,
    ]
    healthy, critical, warning, uncertain = found
    assert healthy.progress
    assert critical.failure
    assert warning.process
    owed = ("tried", "why_failed", "would_resolve", "question", "deferral")
    assert all(getattr(uncertain, name) for name in owed)


def test_review() -> None:
    (example,) = examples("review")
    review = Review.model_validate(example)
    assert set(review.seals) == set(STEPS[:5])
    assert all(re.fullmatch(r"[0-9a-f]{12,64}", seal) for seal in review.seals.values())
    assert review.objections


def test_troubleshooting_skipped_and_done_under_the_ceilings() -> None:
    skipped, done = (Troubleshooting.model_validate(item) for item in examples("troubleshoot"))
    assert skipped.skipped
    assert all(cause.confidence <= CEILINGS[cause.evidence_type] for cause in done.causes)
    for name, ceiling in CEILINGS.items():
        assert f"| `{name}` | {ceiling:.2f} |" in text("troubleshoot")


def test_strategies_with_hypotheses_and_with_none() -> None:
    quiet, full = (Strategy.model_validate(item) for item in examples("strategy"))
    assert [one.dimension for one in full.hypotheses] == ["optimiser"]
    assert "# two more of this form, on other dimensions" in text("strategy")
    assert full.chosen == "1"
    assert not quiet.hypotheses


def test_free_texts_are_under_their_names() -> None:
    (comparison,) = examples("compare")
    (resources,) = examples("resources")
    assert all(re.fullmatch(r"P\d+", name) for name in comparison)
    assert all(isinstance(item, str) for item in comparison.values())
    assert set(resources) == {"reasoning"}


@pytest.mark.parametrize("step", STEPS)
def test_numbers_given_as_observed_cite_where_they_come_from(step: str) -> None:
    """In the examples a number without any citation beside it would be refused."""

    def reasonings(item: Any) -> list[str]:
        if isinstance(item, list):
            return [found for part in item for found in reasonings(part)]
        if not isinstance(item, dict):
            return []
        kept = {"reasoning", "expected", "baseline", "statement", "tried", "why_failed"}
        named = [value for key, value in item.items() if key in kept and isinstance(value, str)]
        explained = [value for key, value in item.items() if re.fullmatch(r"P\d+", key)]
        return named + explained + [f for part in item.values() for f in reasonings(part)]

    nothing = Citable()
    for example in examples(step):
        for reasoning in reasonings(example):
            bare = [c for c in nothing.complaints("x", reasoning) if "has no source" in c]
            assert bare == [], reasoning


def test_citations_are_of_the_kinds_that_exist() -> None:
    for step in STEPS:
        for cited in re.findall(r"\[[A-Z]\d[\d-]*\]", text(step)):
            assert CITATION.fullmatch(cited), cited


def test_no_step_text_names_a_finding_that_does_not_exist() -> None:
    from typing import get_args

    kinds = set(get_args(FindingKind))
    for step in STEPS:
        for name in re.findall(r"finding `([a-z_]+)`", text(step)):
            assert name in kinds


def seen(name: str, quantity: str, value: float | str, stat: str = "last") -> Observation:
    return Observation(
        id=name, quantity=quantity, stat=stat, value=value, source="log", trust=Trust.LOG
    )


def test_the_examples_pass_the_checks_of_the_runtime() -> None:
    """Over the evidence that they speak of, each would be sealed."""
    observations = {
        item.id: item
        for item in (
            seen("E4", "step", 2380),
            seen("E5", "loss", 1.331),
            seen("E6", "loss", 4.118, "first"),
            seen("E8", "loss", "falling", "course"),
            seen("E9", "loss", -0.00011, "trend_slope"),
            seen("E12", "grad_norm", 1.9, "max"),
            seen("E14", "eval_loss", 1.69),
            seen("E40", "grad_norm", 88.0, "max").model_copy(update={"step": 1600}),
            seen("E41", "learning_rate", 0.002),
        )
    }
    criteria = [Criterion(id="C3", name="loss of a uniform guess", value=4.159, source="ln(64)")]
    (raw,) = examples("predict")
    predictions = [
        Prediction.model_validate(item | {"id": f"P{number}"}) for number, item in enumerate(raw, 1)
    ]
    healthy = Assessment.model_validate(examples("metrics")[0])
    complaints = duties.assessment_complaints(healthy, observations, criteria, predictions, (), ())
    assert complaints == []

    finding = Finding(
        id="F1",
        kind="nan_loss",
        severity=Severity.CRITICAL,
        observations=("E5",),
        since_step=1620,
        summary="the loss is nan",
        confidence=0.7,
    )
    citable = Citable(observations.values(), findings=[finding])
    done = Troubleshooting.model_validate(examples("troubleshoot")[1])
    assert (
        duties.troubleshooting_complaints(done, healthy, citable, observations, [finding], ()) == []
    )

    more = [hypothesis(dimension) for dimension in ("data", "hardware")]
    raw = examples("strategy")[1]
    full = Strategy.model_validate(raw | {"hypotheses": raw["hypotheses"] + more})
    due = [full.hypotheses[0].model_copy(update={"id": "H1-2"})]
    now = datetime(2029, 1, 1, tzinfo=timezone.utc)
    assert planning.strategy_complaints(full, Status.CRITICAL, due, observations, now) == []
    quiet = Strategy.model_validate(examples("strategy")[0])
    assert planning.strategy_complaints(quiet, Status.HEALTHY, (), observations, now) == []

    review = Review.model_validate(examples("review")[0])
    assert auditing.review_complaints(review, "rules", review.seals, ["E5"], observations) == []
