"""Stable-Baselines, RLlib and Ray Tune, ML-Agents, Spinning Up, RSL-RL."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.logs import Log, check, lines, loss

NINE = range(1, 10)


def box(rows: dict[str, object]) -> str:
    """A table of Stable-Baselines3's logger: groups, and their values indented."""
    ruler = "-" * 40
    body = "".join(f"| {name:<20} | {value!s:<12} |\n" for name, value in rows.items())
    return f"{ruler}\n{body}{ruler}\n"


def sb3(i: int) -> str:
    rows: dict[str, object] = {"rollout/": "", "   ep_len_mean": 195, "   ep_rew_mean": f"{i}.5"}
    rows |= {"time/": "", "   fps": 900, "   iterations": i, "   total_timesteps": i * 2048}
    rows |= {"train/": "", "   approx_kl": 0.0094, "   entropy_loss": -0.629}
    return box(rows | {"   learning_rate": 0.0003, "   loss": loss(i), "   n_updates": i * 10})


def rllib(i: int, done: bool = False) -> dict[str, Any]:
    stats = {"cur_lr": 5e-5, "total_loss": loss(i), "policy_loss": -0.01, "kl": 0.01}
    return {
        "episode_reward_max": i + 9,
        "episode_reward_mean": i + 0.5,
        "info": {"learner": {"default_policy": {"learner_stats": {**stats, "grad_gnorm": 1.5}}}},
        "timesteps_total": i * 4000,
        "training_iteration": i,
        "time_this_iter_s": 3.1,
        "done": done,
        "config": {"lr": 1.0, "train_batch_size": 4000},
    }


def trials(i: int, status: str = "RUNNING") -> str:
    names = ("Trial name", "status", "loc", "iter", "total time (s)", "ts", "reward")
    first = ("PPO_CartPole-v0_00000", status, "172.17.0.2:1423", i, f"3.{i}", i * 4000, f"{i}.5")
    other = ("PPO_CartPole-v0_00001", "RUNNING", "172.17.0.2:1424", 1, 3.1, 4000, "0.5")

    def row(cells: tuple[object, ...]) -> str:
        return "| " + " | ".join(f"{cell!s:>21}" for cell in cells) + " |\n"

    rule = "+".join("-" * 23 for _ in names)
    return (
        f"== Status ==\nNumber of trials: 2/2 (2 RUNNING)\n+{rule}+\n{row(names)}|{rule}|\n"
        f"{row(first)}{row(other)}+{rule}+\n\n\n"
    )


def tune(i: int) -> str:
    return (
        f"Trial PPO_x_00000 finished iteration {i} at 2023-10-01 10:00:00.\n"
        "╭──────────────────────────────────────╮\n│ Trial PPO_x_00000 result             │\n"
        "├──────────────────────────────────────┤\n"
        f"│ env_runners/episode_return_mean     {i}.5 │\n"
        f"│ num_env_steps_sampled_lifetime   {i * 4000} │\n"
        f"│ training_iteration               {i}   │\n"
        "╰──────────────────────────────────────╯\n"
    )


REWARDS = {"reward": (9, (4000, 1.5), (36_000, 9.5))}
LEARNER = {
    **REWARDS,
    "loss": (9, (4000, 2.98), (36_000, 2.82)),
    "learning_rate": (9, (4000, 5e-5), (36_000, 5e-5)),
    "grad_norm": (9, (4000, 1.5), (36_000, 1.5)),
    "kl": (9, (4000, 0.01), (36_000, 0.01)),
}
LOGS: dict[str, Log] = {
    "stable-baselines3": (
        "Using cpu device\nWrapping the env in a DummyVecEnv.\n" + "".join(sb3(i) for i in NINE),
        {"last_step": 18_432, "ended": "running", "runs": 1, "format": "box"},
        {
            "reward": (9, (2048, 1.5), (18_432, 9.5)),
            "loss": (9, (2048, 2.98), (18_432, 2.82)),
            "learning_rate": (9, (2048, 3e-4), (18_432, 3e-4)),
            "kl": (9, (2048, 0.0094), (18_432, 0.0094)),
            "train/entropy_loss": (9, (2048, -0.629), (18_432, -0.629)),
        },
    ),
    "stable-baselines3 with an evaluation": (
        sb3(1) + sb3(2) + "Eval num_timesteps=5000, episode_reward=195.00 +/- 12.00\n"
        "Episode length: 195.00 +/- 12.00\nNew best mean reward!\n"
        + box({"eval/": "", "   mean_reward": 185, "time/": "", "   total_timesteps": 5000})
        + sb3(3),
        {"last_step": 6144, "runs": 1},
        {"reward": (3, (2048, 1.5), (6144, 3.5)), "eval_reward": (1, (5000, 185), (5000, 185))},
    ),
    "stable-baselines3's csv": (
        # In the order in which the columns came up, and blank before training began.
        "time/fps,rollout/ep_rew_mean,time/total_timesteps,train/loss,train/learning_rate\n"
        "900,0.5,2048,,\n"
        + "".join(f"900,{i}.5,{i * 2048},{loss(i)},0.0003\n" for i in range(2, 10)),
        {"last_step": 18_432, "ended": "unknown"},
        {
            "reward": (9, (2048, 0.5), (18_432, 9.5)),
            "loss": (8, (4096, 2.96), (18_432, 2.82)),
        },
    ),
    "stable-baselines3's json": (
        "".join(
            json.dumps({"rollout/ep_rew_mean": i + 0.5, "time/total_timesteps": i * 2048}) + "\n"
            for i in NINE
        ),
        {"last_step": 18_432},
        {"reward": (9, (2048, 1.5), (18_432, 9.5))},
    ),
    "stable-baselines 2": (
        "".join(
            box(
                {
                    "approxkl": 0.01,
                    "ep_reward_mean": f"{i}.5",
                    "policy_loss": -0.01,
                    "serial_timesteps": i * 128,
                    "total_timesteps": i * 128,
                }
            )
            for i in NINE
        ),
        {"last_step": 1152},
        {"reward": (9, (128, 1.5), (1152, 9.5)), "kl": (9, (128, 0.01), (1152, 0.01))},
    ),
    "spinning up": (
        "".join(
            box(
                {
                    "Epoch": i,
                    "AverageEpRet": f"{i}.5",
                    "TotalEnvInteracts": 4000 * (i + 1),
                    "LossPi": loss(i),
                    "LossV": 2.5,
                    "KL": 0.002,
                }
            )
            for i in range(9)
        ),
        {"last_step": 36_000},
        {
            "reward": (9, (4000, 0.5), (36_000, 8.5)),
            "loss": (9, (4000, 3.0), (36_000, 2.84)),
        },
    ),
    "rllib's console": (
        lines(
            "Result for PPO_x:\n  episode_reward_mean: {i}.5\n  info:\n    total_loss: {l}\n"
            "  timesteps_total: {i}000\n",
        ),
        {"last_step": 40_000},
        {"reward": (40, (1000, 1.5), (40_000, 40.5)), "loss": (40, (1000, 2.98), (40_000, 2.2))},
    ),
    "rllib's results under way": (
        "".join(json.dumps(rllib(i)) + "\n" for i in NINE),
        {"last_step": 36_000, "ended": "running"},
        LEARNER,
    ),
    "rllib's progress to the end": (
        "episode_reward_mean,timesteps_total,training_iteration,done,date,"
        "info/learner/default_policy/learner_stats/total_loss,"
        "info/learner/default_policy/learner_stats/cur_lr\n"
        + "".join(f"{i}.5,{i * 4000},{i},{i == 9},2022-01-01_10,{loss(i)},5e-05\n" for i in NINE),
        {"last_step": 36_000, "ended": "finished"},
        {key: LEARNER[key] for key in ("reward", "loss", "learning_rate")},
    ),
    "rllib's progress under way": (
        "episode_reward_mean,timesteps_total,training_iteration,done\n"
        + "".join(f"{i}.5,{i * 4000},{i},False\n" for i in NINE),
        {"last_step": 36_000, "ended": "unknown"},
        REWARDS,
    ),
    "tune's trials, the first of them": (
        "".join(trials(i) for i in NINE),
        {"last_step": 36_000, "runs": 1},
        REWARDS,
    ),
    "tune's trials at the end": (
        "".join(trials(i) for i in range(1, 9)) + trials(9, "TERMINATED"),
        {"last_step": 36_000, "ended": "finished"},
        REWARDS,
    ),
    "tune's boxes": ("".join(tune(i) for i in NINE), {"last_step": 36_000, "runs": 1}, REWARDS),
    "ml-agents": (
        " Version information:\n  ml-agents: 0.28.0,\n[INFO] Hyperparameters for behavior name "
        "3DBall: \n\ttrainer_type:\tppo\n\thyperparameters:\t\n\t  batch_size:\t64\n"
        "\t  learning_rate:\t0.0003\n\tmax_steps:\t500000\n"
        + "".join(
            f"[INFO] 3DBall. Step: {i * 12_000}. Time Elapsed: {i}9.123 s. Mean Reward: {i}.167. "
            "Std of Reward: 0.9. Training.\n"
            for i in NINE
        ),
        {"last_step": 108_000, "total_steps": 500_000, "ended": "running"},
        {"reward": (9, (12_000, 1.167), (108_000, 9.167))},
    ),
    "ml-agents of old": (
        "".join(
            f"INFO:mlagents.trainers: ppo: 3DBall: Step: {i * 1000}. Time Elapsed: {i}.1 s Mean "
            f"Reward: {i}.2. Std of Reward: 0.7. Training.\n"
            for i in NINE
        ),
        {"last_step": 9000},
        {"reward": (9, (1000, 1.2), (9000, 9.2))},
    ),
    "rsl-rl": (
        "".join(
            f"{'#' * 80}\n                      \x1b[1m Learning iteration {i}/500 \x1b[0m\n\n"
            "                       Computation: 29696 steps/s (collection: 2.8s, learning 0.5s)\n"
            f"                    Mean surrogate loss: {loss(i)}\n"
            f"                            Mean reward: {i}.5\n{'-' * 80}\n"
            f"                        Total timesteps: {1536 * i}\n"
            "                         Iteration time: 3.31s\n\n"
            for i in NINE
        ),
        {"last_step": 9, "total_steps": 500, "ended": "running", "runs": 1},
        {"loss": (9, (1, 2.98), (9, 2.82)), "reward": (9, (1, 1.5), (9, 9.5))},
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_what_is_printed(name: str) -> None:
    check(LOGS[name])
