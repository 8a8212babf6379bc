"""Canonical names of metrics, whatever the framework calls them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple


class Canonical(NamedTuple):
    """What a logged name means.

    `scale` brings a value that carried no unit of its own to `unit`. Where several names of one
    log mean the same, the lowest `rank` is taken, and then the one with the most points. `known`
    is False for a name that stands for itself. `role` is `position` (where the run is), `result`
    (what it achieves) or `setting` (what is also written in configs).
    """

    name: str
    unit: str | None = None
    scale: float = 1.0
    rank: int = 9
    known: bool = False
    role: str = "result"


POSITIONS = frozenset({"step", "total_steps", "epoch", "total_epochs", "epoch_step", "epoch_steps"})
EVALUATED = frozenset({"loss", "accuracy", "perplexity", "reward"})

# canonical: (unit, role, names in falling order of preference; "|" parts a rank from the next)
_TABLE: dict[str, tuple[str | None, str, str]] = {
    "step": (
        None,
        "position",
        "global_step global_steps num_updates training/global_step total_timesteps"
        " timesteps_total num_env_steps_sampled_lifetime env_steps total_env_steps"
        " time/total_timesteps totalenvinteracts acc_iter accumulated_iter"
        " | step steps train_step trainer/global_step step_num cur_step current_step"
        " current_steps optimizer_step optim_step opt_step training_step number_of_steps"
        " | iter iters iteration iterations it itr update updates train_iter"
        " training_iteration_step iter_num boosting_iteration"
        " | batch batch_idx _step episode nupdates"
        " | training_iteration time/iterations round tree trees boosting_round",
    ),
    "total_steps": (
        None,
        "position",
        "total_steps max_steps total_training_steps num_training_steps total_optimization_steps"
        " total_iterations max_iters max_iter train_iters total_iters num_train_steps"
        " total_train_steps total_num_steps",
    ),
    "epoch": (None, "position", "epoch ep cur_epoch current_epoch training/epoch trainer/epoch"),
    "total_epochs": (
        None,
        "position",
        "total_epochs max_epochs max_epoch num_epochs num_train_epochs",
    ),
    "epoch_step": (None, "position", "epoch_step"),
    "epoch_steps": (None, "position", "epoch_steps"),
    "loss": (
        None,
        "result",
        "loss total_loss train_loss training_loss lm_loss avg_loss average_loss mean_loss"
        " loss_total lossf loss_mean global_avg_loss loss_metrics/global_avg_loss loss_avg"
        " batch_loss step_loss loss_average tot_loss"
        " loss/train/total loss_function"
        " | final_loss languagecrossentropy ce_loss cross_entropy_loss"
        " cross_entropy cross-entropy crossentropy xent nll_loss loss_1 cost ce nll mse_loss"
        " reconstruction_loss elbo logloss binary_logloss multi_logloss mlogloss softmaxloss celoss"
        " | pg_loss actor/pg_loss policy_loss actor_loss actor/loss box_loss loss_0 mlm_loss"
        " policy_gradient_loss losspi g_loss loss_g loss_gen"
        " act_loss l_total l_pix l_g_pix | global_max_loss loss_metrics/global_max_loss",
    ),
    "learning_rate": (
        None,
        "setting",
        "learning_rate lr learningrate actor/lr lr_0 current_lr lr/pg0 learning_rate_0 optim0_lr0"
        " optim/lr current_learning_rate x/lr0 default_optimizer_learning_rate"
        " | lr_1 current_lr_1 optimizer/lr base_lr cur_lr actor_lr act_lr"
        " | current_lr_0 critic/lr critic_lr lr/pg1",
    ),
    "grad_norm": (
        None,
        "result",
        "grad_norm gnorm gradient_norm actor/grad_norm global_grad_norm grad_norm/total"
        " norm total_norm gradnorm grad_norms optim/total_grad_norm l2_grad_norm grad._norm"
        " | actor_grad_norm grad_norm_1 grad_l2 grad grad_gnorm"
        " gradients_default_optimizer_global_norm | grad_norm_0 critic/grad_norm",
    ),
    "tokens_per_second": (
        "tokens/s",
        "result",
        "tokens_per_second tokens_per_sec tok/s tokens/s tokens/sec tok/sec tps throughput(tps)"
        " toks/s wps words_per_second train_tokens_per_second tokens_per_s tgs"
        " tokens_per_second_per_gpu tokens/sec/gpu"
        " perf/throughput throughput/tokens_per_sec tokens/second tokens/s/device"
        " tokens_per_second_per_device tokens_per_sec_per_gpu tok/sec/gpu tokens_per_gpu_per_second"
        " throughput/device/tps throughput/device/tokens_per_second tokens/gpu/second",
    ),
    "samples_per_second": (
        "samples/s",
        "result",
        "samples_per_second samples_per_sec samples/s samples/sec images/s images/sec img/s"
        " imgs/s ips images_per_second examples/s examples/sec example/sec example/s"
        " sequences/s sequences_per_second seq/s currsamplespersec throughput_train"
        " | runningavgsamplespersec total_ips compute_ips record/second records/second"
        " samples/second fps time/fps images/second interval_samples_per_second"
        " timing/seqs_per_second",
    ),
    "steps_per_second": (
        "steps/s",
        "result",
        "steps_per_second steps_per_sec it/s iter/s steps/s step/s steps/sec iters/s ups"
        " train_speed(iter/s) iterations_per_second batches/s it/sec iter/sec global_step/sec ba/s"
        " throughput/batches_per_sec throughput/device/batches_per_second throughput/device/bps"
        " | interval_steps_per_second",
    ),
    "step_time": (
        "s",
        "result",
        "step_time step_time_seconds elapsed_time_per_iteration iteration_time iter_time"
        " time_per_step time_per_iteration perf/time_per_step timing_s/step timing/step sec/step"
        " s/it s/iter"
        " time_per_iter batch_time batch_cost dt ms/step iter_dt time/step time_per_batch"
        " time/iteration step_duration seconds_per_step train/time s/step ms/it"
        " performance/batch_time time_this_iter_s step_timing_in_s train_step_timing"
        " train_step_timing_in_s step_avg sec/iter train_speed(s/it) total_step_time"
        " | time seconds | from_timestamps",
    ),
    "mfu": (
        "ratio",
        "result",
        "mfu perf/mfu/actor perf/mfu model_flops_utilization bf16_mfu throughput/device/mfu hfu",
    ),
    "perplexity": (None, "result", "perplexity ppl lm_loss_ppl train_ppl languageperplexity"),
    "accuracy": (
        None,
        "result",
        "accuracy acc mean_token_accuracy token_accuracy token_acc top1 top_1 top1_acc acc1 acc@1"
        " categorical_accuracy sparse_categorical_accuracy binary_accuracy prec@1 accuracy_top1"
        " accuracy_@_1"
        " | top5 acc5 acc@5 top_5 accuracy_@_5",
    ),
    "reward": (
        None,
        "result",
        "reward reward_mean mean_reward rewards/mean critic/rewards/mean ep_rew_mean"
        " rollout/ep_rew_mean ep_reward_mean episode_reward_mean env_runners/episode_return_mean"
        " episode_return_mean avg_reward average_reward mean_episode_reward objective/scores"
        " episode_return ep_return_mean reward/mean objective/rlhf_reward"
        " average_reward_score reward_score averageepret episode_reward"
        " rollout/rewards rollout/raw_reward"
        " | reward/total rewards ep_reward return charts/episodic_return episodic_return"
        " avg_return mean_return average_return",
    ),
    "kl": (
        None,
        "result",
        "kl kl_mean objective/kl critic/kl mean_kl kl_divergence policy/kl"
        " | ppo_kl actor/ppo_kl approx_kl actor/kl policy/approxkl approxkl actor/kl_loss kl_loss"
        " loss_kl mean_kl_loss",
    ),
    "entropy": (
        None,
        "result",
        "entropy actor/entropy policy_entropy mean_entropy objective/entropy actor/entropy_loss"
        " policy/entropy | entropy_loss",
    ),
    "response_length": (
        "tokens",
        "result",
        "response_length mean_generation_length average_response_length rollout/response_len/mean"
        " rollout/response_lengths average_sequence_length completion_length seq._length"
        " | mean_response_length glen",
    ),
    "clipped_ratio": (None, "result", "clipped_ratio rollout/truncated_ratio truncation_rate"),
    "loss_scale": (
        None,
        "setting",
        "loss_scale grad_scale amp_scaler loss_scaler scale scaler_scale",
    ),
    "gpu_memory": (
        "bytes",
        "result",
        "gpu_memory memallocated gpu_mem mem memory gpu_mem_gb max_mem max_memory"
        " perf/max_memory_allocated_gb vram memory_allocated max_memory_allocated"
        " memory/max_reserved memory/max_active memory/max_mem_active peak_memory_active cuda_mem"
        " peak_mem. system/peak_gpu_memory | maxmemallocated perf/max_memory_reserved_gb"
        " memory_reserved max_memory_reserved memory/max_allocated memory/max_mem_allocated"
        " memory/device_reserved memory/device_mem_reserved peak_memory_alloc"
        " peak_memory_reserved",
    ),
    "memory": ("bytes", "result", "rss cpu_memory host_memory ram perf/cpu_memory_used_gb cpu_mem"),
    "num_tokens": (
        "tokens",
        "result",
        "num_tokens num_input_tokens_seen consumed_tokens tokens_seen total_tokens ntokens"
        " num_tokens_seen n_tokens_seen perf/total_num_tokens throughput/total_tokens"
        " num_consumed_tokens",
    ),
    "eta": ("s", "result", "eta remaining remaining_time eta_seconds"),
}

_RANKED: dict[str, Canonical] = {}
for _name, (_unit, _role, _rows) in _TABLE.items():
    for _rank, _aliases in enumerate(_rows.split("|")):
        for _alias in _aliases.split():
            _RANKED[_alias] = Canonical(_name, _unit, 1.0, _rank, True, _role)

_SCORES = """
    hellaswag mmlu bleu sacrebleu rouge rouge1 rouge2 rougel wer cer f1 f1_score macro_f1 micro_f1
    auc roc_auc ap ap50 ap75 aps apm apl map map50 map50-95 map_50 miou iou dice psnr ssim fid
    rmse mae mse precision recall
    ndcg mrr hit_rate exact_match em r2 mcc pck bpc bpb bits_per_byte score mean_iou core_metric
"""
_BENCHMARKS = "hellaswag mmlu gsm8k arc_easy arc_challenge piqa winogrande humaneval truthfulqa"
SCORES = frozenset({"accuracy", "perplexity", *_SCORES.split()})
"""Names of what is measured of a model by itself, mostly on held-out data."""
for _alias in _SCORES.split():
    _RANKED.setdefault(_alias, Canonical(_alias, None, 1.0, 0, True, "result"))
for _name in _BENCHMARKS.split():
    for _alias in (_name, f"{_name}_accuracy", f"{_name}_acc", f"{_name}_score"):
        _RANKED.setdefault(_alias, Canonical(_name, None, 1.0, 0, True, "result"))

_TRAIN = frozenset({"train", "training", "tr", "trn"})
_EVAL = frozenset({"val", "valid", "validation", "eval", "evaluation", "test", "dev", "holdout"})
_GROUPS = frozenset(
    {"metrics", "losses", "global", "perf", "learning", "charts", "stats", "time", "optim"}
)
_GROUPS |= {"main"}  # Chainer's report of its optimizer's target
_LEARNER = re.compile(r"(?:info/)?learners?/(?:[\w.-]+/){0,2}?(\w+)")
"""RLlib's results of one policy."""
_UNIT_HINTS = {
    "ms": 1e-3,
    "s": 1.0,
    "sec": 1.0,
    "us": 1e-6,
    "%": 0.01,
    "gb": 1024.0**3,
    "gib": 1024.0**3,
    "mb": 1024.0**2,
    "mib": 1024.0**2,
}
_HINT = re.compile(r"(?<![\s_])[\s_]*\(([^()]*)\)$")
# Alone, as in `step 5 | train 1.2 | val 1.3` and CatBoost's `learn: 1.2 test: 1.3`.
_BARE_LOSS = {
    **dict.fromkeys(("train", "learn"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "test", "eval"), "eval"),
}
_GLUED_PHASE = re.compile(r"(?i:train(?:ing)?|val(?:id(?:ation)?)?|test|eval|dev)(?=[A-Z][a-z])")
"""TrainLoss, ValAcc."""
_MEAN = re.compile(r"(\w+?)_(?:avg|mean)")
"""psnr_avg."""
_ERRORS = frozenset({"error", "err", "error_rate"})
"""What is a measure only where it is said to be an evaluation's."""
_STATISTIC = re.compile(r"std|var|min|max|best|median|sum|ema|last|p\d+|quantile")
# lr-DecoupledAdamW/group0, lr-pg_0, learning_rate_group0: of the first group of weights.
_GROUP_RATE = re.compile(
    r"(?:optim(?:izer)?/)?(?:lr|learning_rate)"
    r"(?:[-_/ ](?:(?:decoupled)?(?:adam|sgd|lion|muon|adafactor)\w*?|pg|group|param_group))?"
    r"(?:[-_/ ]?group)?[-_/ ]?0?"
)
# PPO's value function, as TRL names it: no evaluation.
_VALUE_FUNCTION = re.compile(
    r"(?:ppo/)?val/(?:clipfrac(?:_avg)?|ratio(?:_var)?|num_eos_tokens|vpred|error|mean|var)"
)
_LOSS_WORD = re.compile(r"(?:^|[_./-])loss(?:es)?(?:$|[_./-])|loss$")
_NOT_RESULT = re.compile(
    r"weight|scale|scaling|type|func|fn\b|reduction|coef|ratio|lambda|name|thresh|smooth|_aggr"
    r"|config|_dir|path|_lossz|mask|patience|every|interval|freq|max_steps|num_|count"
)
_SETTING = re.compile(
    r"batch|_size|seed|beta|eps\b|epsilon|decay|dropout|warmup|momentum|hidden|layers?\b|heads?\b"
    r"|max_|min_lr|num_|_dim|workers|interval|every|accumulation|vocab|rank\b|world|patience"
    r"|gamma|alpha|threshold|timeout|clip_range|n_embd|block"
)


def slug(name: str) -> str:
    """A name as a key: lower case, `[a-z0-9_./-]` only."""
    text = re.sub(r"[^a-z0-9_./-]+", "_", name.strip().lower())
    return re.sub(r"_{2,}", "_", text).strip("_./-") or "value"


def is_bare(name: str) -> bool:
    """Whether a name is that of a phase alone, which mostly stands for the loss there."""
    return name.strip().strip("'\"").lower() in _BARE_LOSS


def is_setting(name: str) -> bool:
    """Whether a name is one that configs are made of."""
    return bool(_SETTING.search(name.lower()))


def _lookup(name: str) -> Canonical | None:
    found = _RANKED.get(name)
    if found is None and "." in name:
        found = _RANKED.get(name.replace(".", "/"))
    if found is None and "learner" in name and (learner := _LEARNER.fullmatch(name)):
        found = _RANKED.get(learner[1])
    if found is None and "l" in name and _GROUP_RATE.fullmatch(name):
        return Canonical("learning_rate", None, 1.0, 1, True, "setting")
    if found is None and (mean := _MEAN.fullmatch(name)) and mean[1] in SCORES:
        return _RANKED.get(mean[1])
    if found is None and _LOSS_WORD.search(name) and not _NOT_RESULT.search(name):
        return Canonical("loss", None, 1.0, 5, True, "result")
    return found


def _split_phase(name: str) -> tuple[str, str | None]:
    """Take words that name the phase off both ends: `train/lr`, `val_loss`, `loss_eval`."""
    parts = re.split(r"([_/.\-])", name)
    words = parts[::2]
    if len(words) < 2:
        return name, None
    if words[0] in _TRAIN:
        return "".join(parts[2:]), "train"
    if words[0] in _EVAL:
        return "".join(parts[2:]), "eval"
    if words[-1] in _TRAIN:
        return "".join(parts[:-2]), "train"
    if words[-1] in _EVAL:
        return "".join(parts[:-2]), "eval"
    return name, None


@lru_cache(maxsize=4096)
def canonical(name: str, phase: str | None = None) -> tuple[Canonical, str | None]:
    """What `name` means, and the phase it tells itself (`train`, `eval` or None).

    `phase` is what the line or section says; a name that tells its own phase overrides it.
    The canonical name of an evaluation's value is prefixed `eval_`.
    """
    low = re.sub(r"\s+", "_", name.strip().strip("'\"").lower().replace(" / ", "/"))
    scale = 1.0
    exact = _RANKED.get(low)
    if exact is None and (glued := _GLUED_PHASE.match(name)):
        low = f"{low[: glued.end()]}_{low[glued.end() :]}"
    hinted = None
    if exact is None and (match := _HINT.search(low)):
        hint = match[1]
        if hint in _UNIT_HINTS:
            hinted = _UNIT_HINTS[hint]
            low = low[: match.start()]
        else:
            try:
                # verl prints lr(1e-4):0.010, that is 0.010 in units of 1e-4.
                scale = float(hint)
                low = low[: match.start()]
            except ValueError:
                # PaddlePaddle: lr(Momentum); DeepSpeed-Chat: acc (higher is better)
                if low[: match.start()] in _RANKED and not _STATISTIC.search(hint):
                    low = low[: match.start()]
    elif exact is None and low.endswith("_gb"):
        hinted = 1024.0**3
    rest, own = low, None
    if _VALUE_FUNCTION.fullmatch(low):
        return Canonical(slug(low)), None
    if alone := _BARE_LOSS.get(low):
        name = "eval_loss" if alone == "eval" or phase == "eval" else "loss"
        return Canonical(name, None, 1.0, 6), alone
    found = _lookup(low) if low in _RANKED else None
    if found is None or found.name in EVALUATED:
        for _ in range(3):
            if rest in _RANKED and rest not in {"train/time"} and own is not None:
                break
            shorter, seen = _split_phase(rest)
            if seen is None:
                head, _sep, tail = rest.partition("/")
                if tail and head in _GROUPS and _RANKED.get(rest) is None:
                    rest = tail
                    continue
                break
            rest, own = shorter, seen if own != "eval" else own
        stripped = _lookup(rest)
        found = found if found is not None and stripped is None else stripped
    meant = own or phase
    if found is None and own == "eval" and (last := _RANKED.get(rest.rpartition("/")[2])):
        # eval/c4_en/Perplexity: a measure of one of several sets
        found = last._replace(rank=7) if last.name in SCORES else None
    if found is None and own == "eval" and rest in _ERRORS:
        found = Canonical(rest, None, 1.0, 0, True)
    if found is None:
        key = slug(low)
        if own is None and meant == "eval":
            key = f"eval_{key}"
        elif own == "eval":
            key = f"eval_{slug(rest)}"
        return Canonical(key, None, scale * (hinted or 1.0)), own
    if found.role == "position" and own == "eval":
        return Canonical(f"eval_{slug(rest)}"), own
    if hinted is not None and found.unit in {"s", "ratio", "bytes"}:
        scale *= hinted
    if low.endswith("_gb") and found.unit == "bytes":
        scale *= 1024.0**3 if hinted is None else 1.0
    if low in {"ms/step", "ms/it"}:
        scale *= 1e-3
    target = found.name
    if meant == "eval" and found.role != "position":
        if target == "learning_rate":
            return found._replace(scale=scale), own
        target = f"eval_{target}"
    return found._replace(name=target, scale=scale), own
