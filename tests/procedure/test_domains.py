"""Which domain skills a run asks for, and which it does not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwarden.evidence.config import training_facts
from trainwarden.procedure.domains import complaints, demanded
from trainwarden.records.observation import Observation, Place, Trust


def seen(quantity: str, value: Any = 1.0, source: str = "log", **fields: Any) -> Observation:
    trust = Trust.LOG if source == "log" else Trust.PROCESS
    return Observation(quantity=quantity, value=value, source=source, trust=trust, **fields)


def skills(
    config: dict[str, Any] | None = None, *observations: Observation, **more: Any
) -> list[str]:
    config = config or {}
    found = demanded(training_facts(config), config, observations, **more)
    assert all(demand.why for demand in found)
    return [demand.skill for demand in found]


ALIVE = seen("process.alive", value=True, source="process")


def test_an_ordinary_run_asks_for_none() -> None:
    config = {"max_steps": 100, "learning_rate": 1e-4, "vocab_size": 64, "output_dir": "out"}
    assert skills(config, seen("loss"), seen("grad_norm"), ALIVE) == []


@pytest.mark.parametrize(
    "names",
    [
        ["reward"],
        ["rewards/format/mean", "kl"],
        ["critic/rewards/mean"],
        ["kl", "entropy"],
        ["kl", "clip_ratio/region_mean"],
        ["eval_reward"],
    ],
)
def test_quantities_of_reinforcement_learning(names: list[str]) -> None:
    assert skills(None, *map(seen, names)) == ["grpo-monitor"]


@pytest.mark.parametrize(
    "names",
    [
        ["kl", "loss"],  # a variational or a distilled model
        ["entropy", "loss"],
        ["rewards/chosen", "rewards/rejected", "rewards/margins", "loss"],  # DPO
    ],
)
def test_quantities_that_only_look_like_it(names: list[str]) -> None:
    assert skills(None, *map(seen, names)) == []


def test_a_reward_that_is_not_of_the_run_says_nothing() -> None:
    assert skills(None, seen("reward", source="process")) == []


@pytest.mark.parametrize(
    "config", [{"num_generations": 8}, {"algorithm": {"adv_estimator": "grpo"}}]
)
def test_a_trainer_of_reinforcement_learning(config: dict[str, Any]) -> None:
    assert skills(config) == ["grpo-monitor"]


def test_a_preference_trainer_is_none() -> None:
    assert skills({"rl": "dpo", "beta": 0.1}) == []


def test_several_ranks() -> None:
    assert skills({"world_size": 8}) == ["distributed-monitor"]
    assert skills({"trainer": {"n_gpus_per_node": 8, "nnodes": 2}}) == ["distributed-monitor"]
    assert skills({"world_size": 1}) == []
    tree = seen("process.tree", "x", "process", text="1@5 root; 2@6 rank=0; 3@6 rank=1")
    assert skills(None, tree) == ["distributed-monitor"]
    alone = seen("process.tree", "x", "process", text="1@5 root; 2@6 rank=0")
    assert skills(None, alone) == []
    launched = seen("process.alive", True, "process", text="torchrun --nproc_per_node=4 train.py")
    assert skills(None, launched) == ["distributed-monitor"]
    one = seen("process.alive", True, "process", text="torchrun --nproc_per_node=1 train.py")
    assert skills(None, one) == []
    assert skills(None, logs=["/r/rank_0.log", "/r/rank_1.log"]) == ["distributed-monitor"]
    assert skills(None, logs=["/r/train.log"]) == []


def test_kubernetes() -> None:
    assert skills({"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"}) == ["k8s-monitor"]
    assert skills(None, logs=["/var/log/pods/ns_p_1/main/0.log"]) == ["k8s-monitor"]
    group = seen(
        "host.cgroup_oom_kills", 0, "host", place=Place(api="/sys/fs/cgroup/kubepods.slice/x")
    )
    assert skills(None, group, ALIVE) == ["k8s-monitor"]


def test_a_machine_that_is_a_pod_says_nothing_of_a_run_elsewhere() -> None:
    assert skills(None, in_pod=True) == []
    gone = seen("process.alive", value=False, source="process")
    assert skills(None, gone, in_pod=True) == []
    assert skills(None, ALIVE, in_pod=True) == ["k8s-monitor"]


@pytest.mark.parametrize(
    "config",
    [
        {"report_to": "wandb"},
        {"report_to": ["tensorboard", "wandb"]},
        {"report_to": ["wandb"]},
        {"trainer": {"logger": ["console", "wandb"]}},
        {"wandb_log": True},
        {"wandb_project": "mine"},
        {"wandb": {"project": "mine"}},
    ],
)
def test_weights_and_biases_by_the_config(config: dict[str, Any]) -> None:
    assert skills(config) == ["wandb-monitor"]


@pytest.mark.parametrize(
    "config",
    [
        {"report_to": "none"},
        {"wandb_log": False, "wandb_project": "owt"},
        {"wandb_project": ""},
        {"wandb": {"enabled": False, "project": "x"}},
        {"report_to": "wandb", "wandb_mode": "disabled"},
    ],
)
def test_weights_and_biases_switched_off(config: dict[str, Any]) -> None:
    assert skills(config) == []


def test_weights_and_biases_by_what_is_there() -> None:
    assert skills(None, trackers=["/r/wandb"]) == ["wandb-monitor"]
    assert skills(None, trackers=["/r/mlruns"]) == []
    assert skills({"use_wandb": False}, trackers=["/r/wandb"]) == []
    open_log = seen("process.open_log", "/r/wandb/run-1/run-1.wandb", "process")
    assert skills(None, open_log) == ["wandb-monitor"]


def test_all_at_once_in_an_order_that_stays() -> None:
    config = {"report_to": "wandb", "world_size": 4, "num_generations": 4}
    assert skills(config, ALIVE, in_pod=True) == [
        "grpo-monitor",
        "distributed-monitor",
        "k8s-monitor",
        "wandb-monitor",
    ]


def test_what_was_not_loaded_is_complained_of() -> None:
    config = {"report_to": "wandb", "world_size": 4}
    found = demanded(training_facts(config), config, ())
    (complaint,) = complaints(found, ["wandb-monitor"])
    assert complaint.startswith("skill: load trainwarden:distributed-monitor first (")
    assert complaints(found, ["wandb-monitor", "distributed-monitor"]) == []


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=12)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=12), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = st.one_of(
    st.sampled_from(["report_to", "wandb", "kind", "apiVersion", "wandb_mode", "world_size"]),
    st.text(max_size=10),
)


@given(st.dictionaries(KEYS, VALUES, max_size=6))
def test_any_config_is_taken(config: dict[str, Any]) -> None:
    for demand in demanded(training_facts(config), config, (ALIVE,)):
        assert demand.why.isprintable()
