"""Which quantity tells whether a run learns, and what it would be if it did not."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwarden.metrics.indicator import direction_of, key_indicator, named_in
from trainwarden.metrics.series import Series
from trainwarden.records.facts import TrainingFacts


def logged(**values: list[float]) -> dict[str, Series]:
    found = {}
    for name, row in values.items():
        name = name.replace("__", "/")
        found[name] = Series(name, name)
        for i, value in enumerate(row):
            found[name].add(i, value)
    return found


def test_the_loss_by_default_with_the_uniform_guess_as_baseline() -> None:
    found = key_indicator(logged(loss=[10.9, 9.0], accuracy=[0.1]), TrainingFacts(vocab_size=50257))
    assert (found.quantity, found.direction) == ("loss", "decrease")
    assert found.baseline == pytest.approx(math.log(50257))
    assert "ln(vocab_size=50257)" in found.baseline_source
    assert not found.rule_of_thumb


def test_a_pretrained_model_is_held_against_its_own_start() -> None:
    found = key_indicator(logged(loss=[1.4, 1.5, 1.3]), TrainingFacts(vocab_size=50257))
    assert found.baseline == 1.4
    assert "first 3 logged" in found.baseline_source
    assert found.chance == pytest.approx(math.log(50257))


def test_rewards_not_the_loss_for_reinforcement() -> None:
    names = logged(loss=[0.0], reward=[0.1, 0.2], kl=[0.0], entropy=[1.0])
    assert key_indicator(names, TrainingFacts()).quantity == "reward"
    assert key_indicator({}, TrainingFacts(task="rl")).quantity == "reward"
    scored = logged(loss=[0.0], critic__score__mean=[0.5], critic__score__max=[1.0], kl=[0.0])
    assert key_indicator(scored, TrainingFacts()).quantity == "critic/score/mean"
    # A language model that also prints a reward margin is no reinforcement.
    assert (
        key_indicator(logged(loss=[1.0], rewards__margins=[0.1]), TrainingFacts()).quantity
        == "loss"
    )


@pytest.mark.parametrize(
    ("guidance", "expected"),
    [
        ("watch eval accuracy", ("eval_accuracy", "increase")),
        ("Please judge it by the validation loss, not the loss.", ("eval_loss", "decrease")),
        ("key metric: accuracy. loss is noisy", ("accuracy", "increase")),
        ("the kl should go up slowly", ("kl", "increase")),
        ("ignore accuracy, watch it anyway", None),
        ("started it yesterday; loss was 3.1", None),
        ("", None),
    ],
)
def test_what_the_user_says(guidance: str, expected: object) -> None:
    names = logged(loss=[1.0], eval_loss=[1.0], accuracy=[0.1], eval_accuracy=[0.1], kl=[0.1])
    assert named_in(guidance, names) == expected


def test_guidance_that_is_not_logged_is_remembered_in_the_reason() -> None:
    found = key_indicator(logged(loss=[1.0]), TrainingFacts(), "watch eval accuracy")
    assert found.quantity == "loss"
    assert "eval_accuracy, which is not logged" in found.why


def test_the_config_chooses_the_best_model_once_there_is_enough() -> None:
    facts = TrainingFacts(metric_for_best_model="f1", greater_is_better=True)
    few = key_indicator(logged(loss=[1.0], eval_f1=[0.1] * 3), facts)
    assert few.quantity == "loss"
    assert "only 3 points" in few.why
    enough = key_indicator(logged(loss=[1.0], eval_f1=[0.1] * 9), facts)
    assert (enough.quantity, enough.direction) == ("eval_f1", "increase")


def test_chance_accuracy_and_nothing_known() -> None:
    found = key_indicator(logged(accuracy=[0.08]), TrainingFacts(num_classes=10))
    assert (found.quantity, found.baseline) == ("accuracy", 0.1)
    nothing = key_indicator({}, TrainingFacts())
    assert nothing.baseline is None
    assert nothing.rule_of_thumb
    regression = key_indicator({}, TrainingFacts(task="regression", num_classes=3))
    assert regression.chance is None


def test_directions() -> None:
    assert direction_of("eval_map50-95") == "increase"
    assert direction_of("reward_loss") == "decrease"
    assert direction_of("wer") == "decrease"


@given(st.text(max_size=200))
def test_any_guidance_is_read(guidance: str) -> None:
    found = key_indicator(logged(loss=[1.0], eval_loss=[1.0]), TrainingFacts(), guidance)
    assert found.quantity in {"loss", "eval_loss"}
