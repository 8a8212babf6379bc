"""What can be told from the few lines that people post."""

from collections.abc import Sequence

import pytest

from support.views import read_text, view
from trainwarden.diagnosis import diagnose
from trainwarden.records.finding import Severity


def loud(*lines: str) -> list[str]:
    found = diagnose(view(read_text("\n".join(lines) + "\n"), live=False))
    return [f.kind for f in found if f.severity is not Severity.INFO]


def rows(**columns: Sequence[float]) -> list[str]:
    """Lines as the transformers trainer prints them."""
    names = list(columns)
    return [
        str(dict(zip(names, values, strict=True))) for values in zip(*columns.values(), strict=True)
    ]


def test_groups_without_spread_from_the_second_step_on() -> None:
    std = [0.4, 0, 0, 0, 0]
    assert loud(
        *rows(loss=[0.1, 0, 0, 0, 0], grad_norm=[3.1, 0, 0, 0, 0], reward_std=std, reward=std)
    ) == ["rl_zero_signal"]


def test_few_groups_without_spread_are_no_fault() -> None:
    std = [0.4, 0, 0, 0.3, 0]
    norms = [3.1, 0, 0, 2.5, 0]
    assert loud(*rows(loss=std, grad_norm=norms, reward_std=std, reward=std)) == []


def test_loss_that_falls_to_nothing_at_once() -> None:
    tiny = [2e-5, 4e-6, 4e-6, 4e-6]
    assert loud(*rows(loss=[1.7, 0, 0, 0], grad_norm=tiny, learning_rate=[1e-5] * 4)) == [
        "zero_loss"
    ]
    assert loud(*rows(loss=[0.001, 0, 0, 0], grad_norm=tiny, learning_rate=[1e-5] * 4)) == []


def test_rate_of_nothing_from_the_start() -> None:
    losses = [2.41, 2.42, 2.41, 2.42, 2.41, 2.42]
    nothing = [0.0] * 6
    assert loud(*rows(loss=losses, grad_norm=nothing, learning_rate=nothing)) == ["lr_schedule"]
    # A small rate that is rounded: the gradient tells.
    assert loud(*rows(loss=losses, grad_norm=[0.4] * 6, learning_rate=nothing)) == []


def epochs(right: float, held: float, low: float, high: float) -> list[str]:
    wandering = (0.2, -0.5, 0.4, 0.2, 0.5, 0.1, 0.3)
    return [
        f"{n}/9 - loss: {low / n:.4f} - accuracy: {right} "
        f"- val_loss: {high + wandering[n - 1]:.4f} - val_accuracy: {held + n / 1000}"
        for n in range(1, 8)
    ]


def test_training_known_by_heart_and_nothing_else() -> None:
    assert loud(*epochs(0.99, 0.35, 0.02, 6.0)) == ["overfitting"]
    assert loud(*epochs(0.99, 0.85, 0.02, 0.4)) == []
    assert loud(*epochs(0.60, 0.35, 0.90, 6.0)) == []


def test_same_answer_to_everything() -> None:
    lines = [
        f"{n}/40 - loss: {2.31 + 0.0005 * (n % 3):.4f} - val_loss: 1.79 - val_accuracy: 0.1587"
        for n in range(1, 11)
    ]
    assert loud(*lines) == ["plateau"]
    lines = [
        f"{n}/40 - loss: {2.31 - 0.05 * n:.4f} - val_loss: 1.79 - val_accuracy: 0.1587"
        for n in range(1, 11)
    ]
    assert loud(*lines) == []


def test_kl_that_runs_away_within_few_values() -> None:
    away = [0.03, 0.04, 0.05, 0.11, 0.5, 3.8, 30.2, 171.0, 248.7]
    assert loud(*rows(kl=away, reward=[1.3] * 9, reward_std=[0.4] * 9)) == ["rl_kl_explosion"]
    up = [0.0, 0.01, 0.02, 0.04, 0.06, 0.07, 0.09, 0.12, 0.15]
    assert loud(*rows(kl=up, reward=[1.3] * 9, reward_std=[0.4] * 9)) == []


def test_table_in_which_kl_runs_away() -> None:
    head = "     pol_surr |       vf_loss |            kl |           ent"
    lines = [f"      0.9{n} |      1.7e+05 |       {kl} |      -0.34" for n, kl in
             enumerate([0.016, 1.75, 3.79, 4.34])]  # fmt: skip
    assert loud("Optimizing...", head, *lines) == ["rl_kl_explosion"]
    lines = [f"      0.9{n} |      1.7e+05 |       0.01{n} |      -0.34" for n in range(4)]
    assert loud("Optimizing...", head, *lines) == []


def resumed(again: float) -> list[str]:
    before = [1.66, 1.65, 1.65, 1.64, 1.65, 1.64, 1.65]
    after = [again, 0.97 * again, 0.95 * again, 0.94 * again]
    lines = [f"step {20_000 + 20 * n} loss {x:.4f}" for n, x in enumerate(before)]
    more = [f"step {20_000 + 20 * n} loss {x:.4f}" for n, x in enumerate(after)]
    return [*lines, "=> loading checkpoint 'last.pt'", *more]


def test_resume_within_what_is_shown() -> None:
    assert loud(*resumed(7.0)) == ["bad_resume"]
    assert loud(*resumed(1.66)) == []


def timed(*seconds: float) -> list[str]:
    return [
        f"step {n} loss {2 - 0.01 * n:.3f} step_time {value}" for n, value in enumerate(seconds, 1)
    ]


def test_last_steps_that_take_many_times_as_long() -> None:
    usual = [1.2, 1.1, 1.2, 1.3, 1.2, 1.1, 1.2, 1.4, 1.9]
    assert loud(*timed(*usual, 6.1, 7.5, 9.9)) == ["step_time_regression"]
    # One long step is a checkpoint or an evaluation.
    assert loud(*timed(*usual, 1.2, 1.1, 9.9)) == []


def test_free_memory_that_melts_away() -> None:
    lines = [
        f"it {n} Memory info of CPU: total:64.00Gb, available: {60 - 4 * n:.2f} Gb"
        for n in range(9)
    ]
    assert loud(*lines) == ["memory_leak"]
    lines = [
        f"it {n} Memory info of CPU: total:64.00Gb, available: {60 - n % 3:.2f} Gb"
        for n in range(9)
    ]
    assert loud(*lines) == []


TABLE = [
    "| GPU | per device bs | gradient acc | Initial loss |",
    "|-----|---------------|--------------|--------------|",
]


def test_table_of_losses_that_go_with_accumulation() -> None:
    assert loud(*TABLE, "| 4 | 16 | 2 | 6.1 |", "| 4 | 8 | 4 | 12.4 |", "| 4 | 1 | 32 | 98 |") == [
        "accumulation_scaling"
    ]
    assert loud(*TABLE, "| 4 | 16 | 2 | 6.1 |", "| 4 | 8 | 4 | 6.2 |", "| 4 | 1 | 32 | 6.1 |") == []


@pytest.mark.parametrize(("times", "named"), [(2.0, ["accumulation_scaling"]), (1.0, [])])
def test_two_runs_of_one_schedule(times: float, named: list[str]) -> None:
    losses, rates = [2.1, 1.6, 1.5, 1.4], [4e-5, 3e-5, 2e-5, 1e-5]
    first = rows(loss=losses, learning_rate=rates)
    second = rows(loss=[times * loss for loss in losses], learning_rate=rates)
    said = ["gradient_accumulation_steps=1", *first, "gradient_accumulation_steps=2", *second]
    assert loud(*said) == named


def test_more_devices_that_do_less_together() -> None:
    slow = ["# 1 node, 4 GPUs", "total images/sec: 610.2", "# 2 nodes, 8 GPUs"]
    assert loud(*slow, "total images/sec: 300.1") == ["step_time_regression"]
    assert loud(*slow, "total images/sec: 1190.4") == []


@pytest.mark.parametrize(
    ("losses", "named"),
    [
        ([15.5, 13.0, 3.8, 2.4, 1.4, 5.8, 7.1, 10.0], ["divergence"]),
        # In a warm-up: hardly anything had been gained that could be lost.
        ([7.1, 6.4, 6.2, 7.1, 9.1, 9.6, 11.1], []),
    ],
)
def test_few_losses_that_turn_around(losses: list[float], named: list[str]) -> None:
    assert loud(*rows(loss=losses)) == named


def wave(last: float) -> list[float]:
    """A small loss that falls, wanders back in a slow wave, and ends at `last`."""
    fall = [0.42 - 0.006 * n for n in range(18)]
    rise = [0.31 + (last - 0.31) * min(1.0, n / 10) for n in range(19)]
    return [loss + 0.002 * (-1) ** n for n, loss in enumerate([*fall, *rise])]


def test_young_loss_that_wanders_back_to_where_it_began() -> None:
    assert loud(*rows(loss=wave(0.415))) == []
    assert loud(*rows(loss=wave(0.8))) == ["divergence"]
    steady, grown = [1.0] * 37, [1.0] * 18 + [8.0] * 19
    # With the loss together gradients tell, alone never.
    assert loud(*rows(loss=wave(0.415), grad_norm=steady)) == []
    assert loud(*rows(loss=wave(0.415), grad_norm=grown)) == ["divergence"]
    assert loud(*rows(loss=wave(0.2), grad_norm=grown)) == []
