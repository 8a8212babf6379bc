"""Which domain skills an assessment demands, told from the config and from what was seen. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from trainwarden.evidence.config_facts import flatten
from trainwarden.evidence.ranks import rank_of
from trainwarden.records.facts import TrainingFacts
from trainwarden.records.hostile import clean
from trainwarden.records.observation import Observation

_POLICY = re.compile(r"entropy|clip_?frac|clip_ratio|advantage|pg_loss|policy|ratio")
"""What is logged beside a KL where a policy is trained; a distilled or a variational model has a
KL as well."""
_REWARD = re.compile(
    r"(eval_)?(reward|reward_std|rewards?/.+/(mean|std)|critic/(rewards|score)/.+)"
)
_RANK = re.compile(r"\brank=(\d+)")
_LAUNCHED = re.compile(r"--(nproc[_-]per[_-]node|nnodes|num[_-](?:processes|machines))[= ](\d+)")
_OFF = ("use_wandb", "wandb_log", "enable_wandb", "log_wandb", "wandb.enabled", "wandb.enable")
_JOBS = frozenset(("PyTorchJob", "MPIJob", "TrainJob", "RayJob", "RayCluster", "Job", "Pod"))


class Demand(NamedTuple):
    """A skill that is to be loaded before the metrics are judged, and why."""

    skill: str
    why: str


def demanded(
    facts: TrainingFacts,
    config: Mapping[str, Any],
    observations: Iterable[Observation],
    logs: Sequence[str] = (),
    *,
    trackers: Sequence[str] = (),
    in_pod: bool = False,
) -> tuple[Demand, ...]:
    """The skills that this run asks for.

    `trackers` are the trackers' folders beside the run; `in_pod` says that this machine is a pod,
    which speaks of the run only where its processes live here.
    """
    seen, flat = tuple(observations), flatten(config)
    reasons = {
        "grpo-monitor": _reinforced(facts, seen),
        "distributed-monitor": _spread(facts, seen, logs),
        "k8s-monitor": _orchestrated(flat, seen, logs, in_pod=in_pod),
        "wandb-monitor": _tracked(flat, seen, trackers),
    }
    return tuple(Demand(skill, clean(why, 200)) for skill, why in reasons.items() if why)


def complaints(demands: Iterable[Demand], loaded: Iterable[str]) -> list[str]:
    """The skills that are demanded and were not loaded."""
    known = set(loaded)
    return [
        f"skill: load trainwarden:{demand.skill} first ({demand.why})"
        for demand in demands
        if demand.skill not in known
    ]


def _reinforced(facts: TrainingFacts, seen: Sequence[Observation]) -> str:
    if facts.task == "rl":
        return f"the config says so: {facts.keys.get('task', 'task')}"
    names = {item.quantity for item in seen if item.source == "log"}
    if rewards := sorted(name for name in names if _REWARD.fullmatch(name)):
        return f"the log has {rewards[0]}"
    if "kl" in names and (policy := sorted(name for name in names if _POLICY.search(name))):
        return f"the log has kl and {policy[0]}"
    return ""


def _spread(facts: TrainingFacts, seen: Sequence[Observation], logs: Sequence[str]) -> str:
    if facts.world_size is not None and facts.world_size > 1:
        return f"the config gives {facts.world_size} ranks: {facts.keys.get('world_size', '')}"
    tree = " ".join(item.text or "" for item in seen if item.quantity == "process.tree")
    if (ranks := len(set(_RANK.findall(tree)))) > 1:
        return f"{ranks} ranks live here"
    for item in seen:
        if item.quantity.startswith("process."):
            for option, count in _LAUNCHED.findall(item.text or ""):
                if int(count) > 1:
                    return f"it was launched with {option} {count}"
    named = {rank for log in logs if (rank := rank_of(Path(log))) is not None}
    return f"logs of {len(named)} ranks" if len(named) > 1 else ""


def _orchestrated(
    flat: Mapping[str, Any], seen: Sequence[Observation], logs: Sequence[str], *, in_pod: bool
) -> str:
    if any(item.quantity.startswith(("k8s.", "pod.")) for item in seen):
        return "pods were seen"
    if "apiVersion" in flat and str(flat.get("kind")) in _JOBS:
        return f"the config is a manifest of a {flat['kind']}"
    if any(log.startswith(("/var/log/pods/", "/var/log/containers/")) for log in logs):
        return "the log is a container's"
    lives = any(item.quantity == "process.alive" and item.value is True for item in seen)
    grouped = any("kubepods" in (item.place.api or "") for item in seen)
    return "the run lives in a pod" if lives and (in_pod or grouped) else ""


def _tracked(flat: Mapping[str, Any], seen: Sequence[Observation], trackers: Sequence[str]) -> str:
    for item in seen:
        if item.quantity == "process.open_log" and "/wandb/" in str(item.value):
            return "the run writes below a wandb folder"
    lowered = {key.lower(): (key, value) for key, value in flat.items()}
    for low, (_, value) in lowered.items():
        if low.endswith(_OFF) and value is False:
            return ""
        if low.endswith(("wandb_mode", "wandb.mode")) and str(value).lower() == "disabled":
            return ""
    for low, (key, value) in lowered.items():
        if _says_wandb(low.rpartition(".")[2], low, value):
            return f"the config has {key}"
    folder = next((path for path in trackers if Path(path).name == "wandb"), None)
    return f"{folder} is beside the run" if folder else ""


def _says_wandb(name: str, low: str, value: Any) -> bool:
    if name in ("report_to", "logger", "loggers", "log_with", "tracker", "trackers"):
        named = value if isinstance(value, (list, tuple)) else [value]
        return any("wandb" in str(one).lower() for one in named)
    if low.endswith(_OFF):
        return value is True
    if name == "wandb_project" or low.endswith("wandb.project"):
        return isinstance(value, str) and bool(value.strip())
    return name == "wandb" and value is True
