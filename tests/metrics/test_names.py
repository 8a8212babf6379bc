from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwarden.metrics.names import canonical, slug
from trainwarden.metrics.values import number_in, to_float


@pytest.mark.parametrize(
    ("logged", "name"),
    [
        ("loss", "loss"),
        ("lm loss", "loss"),
        ("train/loss", "loss"),
        ("Train Loss", "loss"),
        ("val_loss", "eval_loss"),
        ("validation loss", "eval_loss"),
        ("eval/loss", "eval_loss"),
        ("eval_loss", "eval_loss"),
        ("lr", "learning_rate"),
        ("train.lr", "learning_rate"),
        ("learning rate", "learning_rate"),
        ("actor/lr(1e-4)", "learning_rate"),
        ("gnorm", "grad_norm"),
        ("actor/grad_norm", "grad_norm"),
        ("iteration", "step"),
        ("global_step", "step"),
        ("trainer/global_step", "step"),
        ("num_updates", "step"),
        ("time/total_timesteps", "step"),
        ("tps", "tokens_per_second"),
        ("tok/s", "tokens_per_second"),
        ("images/sec", "samples_per_second"),
        ("elapsed time per iteration (ms)", "step_time"),
        ("mfu(%)", "mfu"),
        ("ppl", "perplexity"),
        ("val_acc", "eval_accuracy"),
        ("rollout/ep_rew_mean", "reward"),
        ("critic/rewards/mean", "reward"),
        ("train/approx_kl", "kl"),
        ("grad_scale", "loss_scale"),
        ("num_tokens", "num_tokens"),
        ("completions/mean_length", "completions/mean_length"),
        ("loss_weight", "loss_weight"),
        ("metrics/mAP50(B)", "metrics/map50_b"),
    ],
)
def test_canonical_names(logged: str, name: str) -> None:
    assert canonical(logged)[0].name == name


def test_the_phase_of_the_line_and_of_the_name() -> None:
    assert canonical("loss", "eval")[0].name == "eval_loss"
    assert canonical("train_loss", "eval")[0].name == "loss"
    assert canonical("step", "eval")[0].name == "step"
    assert canonical("val_loss")[1] == "eval"


def test_scales_in_names() -> None:
    assert canonical("actor/lr(1e-4)")[0].scale == pytest.approx(1e-4)
    assert canonical("elapsed time per iteration (ms)")[0].scale == pytest.approx(1e-3)
    assert canonical("mfu(%)")[0].scale == pytest.approx(0.01)
    assert canonical("perf/max_memory_allocated_gb")[0].scale == pytest.approx(2**30)


@given(st.text(max_size=80), st.sampled_from([None, "eval", "train"]))
def test_every_name_is_safe(name: str, phase: str | None) -> None:
    assert re.fullmatch(r"[a-z0-9_./-]+", canonical(name, phase)[0].name)
    assert re.fullmatch(r"[a-z0-9_./-]+", slug(name))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("9,982", 9982.0),
        ("17.9k", 17_900.0),
        ("-1.5e-3", -0.0015),
        ("'0.25'", 0.25),
        ("np.float64(0.5)", 0.5),
        ("tensor(2.5, device='cuda:0')", 2.5),
        ("inf", float("inf")),
        ("1_000", None),
        ("None", None),
        ("", None),
        ("12 monkeys", None),
    ],
)
def test_numbers(text: str, number: float | None) -> None:
    assert number_in(text) == number


def test_a_word_is_no_number() -> None:
    with pytest.raises(ValueError, match="could not convert"):
        to_float("word")
