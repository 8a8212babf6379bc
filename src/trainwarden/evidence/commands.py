"""What a command line tells of a training run: launcher, script, config, model. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

CONFIG_SUFFIXES = (".yaml", ".yml", ".json", ".toml", ".py")

_PYTHON = re.compile(r"(?:python|pypy)[\d.]*(?:\.exe)?|ipython3?")
_MODULE_LAUNCHERS = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "torch.distributed.elastic": "torchrun",
    "accelerate.commands.launch": "accelerate",
    "accelerate.commands.accelerate_cli": "accelerate",
    "deepspeed.launcher.runner": "deepspeed",
    "deepspeed.launcher.launch": "deepspeed",
    "axolotl.cli.train": "axolotl",
    "paddle.distributed.launch": "paddle",
    "horovod.runner.launch": "horovodrun",
    "llamafactory.launcher": "llamafactory",
    "mlx_lm.lora": "mlx_lm",
    "verl.trainer.main_ppo": "verl",
    "verl.trainer.fsdp_sft_trainer": "verl",
}
# Command to the subcommands that train; an empty set means that any use of it does.
_COMMAND_LAUNCHERS: dict[str, tuple[str, frozenset[str]]] = {
    "torchrun": ("torchrun", frozenset()),
    "accelerate": ("accelerate", frozenset({"launch"})),
    "accelerate-launch": ("accelerate", frozenset()),
    "deepspeed": ("deepspeed", frozenset()),
    "lightning": ("lightning", frozenset({"run", "fit"})),
    "fabric": ("lightning", frozenset({"run"})),
    "axolotl": ("axolotl", frozenset({"train"})),
    "llamafactory-cli": ("llamafactory", frozenset({"train"})),
    "trl": ("trl", frozenset({"sft", "dpo", "grpo", "kto", "reward", "rloo"})),
    "tune": ("torchtune", frozenset({"run"})),
    "composer": ("composer", frozenset()),
    "colossalai": ("colossalai", frozenset({"run"})),
    "horovodrun": ("horovodrun", frozenset()),
    "swift": ("swift", frozenset({"sft", "pt", "rlhf"})),
    "xtuner": ("xtuner", frozenset({"train"})),
    "yolo": ("ultralytics", frozenset({"train"})),
    "mlx_lm.lora": ("mlx_lm", frozenset()),
    "allennlp": ("allennlp", frozenset({"train"})),
    "fairseq-train": ("fairseq", frozenset()),
    "fairseq-hydra-train": ("fairseq", frozenset()),
    "spacy": ("spacy", frozenset({"train"})),
}
# These start anything: launchers of a job only where something below them trains.
_GENERAL_LAUNCHERS = {
    "mpirun": "mpirun",
    "mpiexec": "mpirun",
    "mpiexec.hydra": "mpirun",
    "orterun": "mpirun",
    "prterun": "mpirun",
    "orted": "mpirun",
    "prted": "mpirun",
    "hydra_pmi_proxy": "mpirun",
    "srun": "srun",
    "slurmstepd": "srun",
    "ray": "ray",
    "raylet": "ray",
    "nohup": "nohup",
    "setsid": "setsid",
    "timeout": "timeout",
    "time": "time",
    "nice": "nice",
    "numactl": "numactl",
    "taskset": "taskset",
    "stdbuf": "stdbuf",
    "uv": "uv",
    "poetry": "poetry",
    "pdm": "pdm",
    "conda": "conda",
    "micromamba": "conda",
    "sudo": "sudo",
}
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish"})
_NOT_TRAINING = re.compile(
    r"trainwarden|pytest|py\.test|jupyter.*|ipykernel.*|tensorboard|mypy|ruff|pip3?|uvicorn|gunicorn"
    r"|pylsp|pyright.*|jedi.*|debugpy|black|flake8|vllm|sglang.*|text-generation.*|mlflow|gradio"
    r"|streamlit|wandb.*|code-server.*|http\.server|celery|supervisord|nvitop|gpustat|hypothesis"
)
_EDITORS_AND_READERS = re.compile(
    r"n?vim?|emacs|nano|code|less|more|tail|head|cat|grep|rg|g?awk|sed|tee|watch|ssh|scp|rsync|tmux"
    r"|screen|git|make|find|h?top|docker|podman|kubectl|node|claude|gdb|strace"
)
_TRAIN_WORD = re.compile(
    r"(?:^|[^a-z])(?:(?:pre|re)?train(?:er|ing)?|fine[_-]?tun(?:e|er|ing)?|sft|dpo|grpo|ppo|orpo|kto"
    r"|rloo|rlhf|q?lora|distill(?:ation)?|run_(?:clm|mlm|plm|glue|qa|ner|swag|summarization|"
    r"translation|classification|pretraining|speech_recognition\w*|image_classification))(?![a-z])"
)
_OTHER_WORD = re.compile(
    r"(?:^|[^a-z])(?:prepare|preprocess\w*|download|tokeniz\w*|eval\w*|infer\w*|serve\w*|server|plot\w*"
    r"|export|convert|generate|sample|predict|test\w*|monitor|watch\w*|dashboard|demo|data)(?![a-z])"
)
_SUBCOMMANDS = frozenset({"train", "fit", "finetune", "pretrain", "sft", "dpo", "grpo", "ppo"})
_HYPERPARAMETER = re.compile(
    r"-*(?:[\w.]+\.)?(?:lr|learning[_-]rate|max[_-]lr|epochs?|num[_-](?:train[_-])?epochs|"
    r"max[_-](?:epochs|steps|iters)|(?:train|num|total)[_-](?:steps|iters)|train[_-]iters|"
    r"(?:[\w]*[_-])?batch[_-]?size|weight[_-]decay|warmup[_-]\w+|grad(?:ient)?[_-]accum\w*|optimizer)"
)
_NOT_CONFIG = re.compile(
    r"-*(?:.*(?:deepspeed|fsdp|accelerate|tokenizer|peft|quant|logging|log|dataset|data|ds)[_-]?conf.*"
    r"|deepspeed|fsdp)",
    re.I,
)
_CONFIG_OPTION = re.compile(
    r"-*(?:.*[._-])?(?:config|cfg|conf|configs|recipe|hparams|yaml)(?:[_-](?:file|path|yaml))?|-c",
    re.I,
)
MODEL_OPTIONS = (
    "model_name_or_path",
    "pretrained_model_name_or_path",
    "base_model",
    "model_path",
    "model_id",
    "model_name",
    "model",
    "pretrained",
    "actor_rollout_ref.model.path",
    "model.path",
    "model.partial_pretrain",
)


@dataclass(frozen=True)
class Command:
    """A command line taken apart: what program it is, what it runs, with which arguments."""

    program: str
    """Base name of the program, or of the script or module an interpreter runs."""
    entry: str
    """The script's path or the module's name; empty for a bare interpreter or `-c`."""
    python: bool
    arguments: tuple[str, ...]
    inline: bool = False
    """Code given on the command line (`-c`)."""


def parse(argv: Sequence[str]) -> Command:
    """Take a command line apart; anything is accepted."""
    if not argv:
        return Command("", "", False, ())
    program = PurePath(argv[0]).name.lstrip("-")
    if not _PYTHON.fullmatch(program):
        return Command(program, argv[0], False, tuple(argv[1:]))
    rest = list(argv[1:])
    while rest:
        argument = rest.pop(0)
        if argument == "-m" and rest:
            module = rest.pop(0)
            return Command(module, module, True, tuple(rest))
        if argument == "-c":
            return Command(program, "", True, tuple(rest), inline=True)
        if argument in ("-X", "-W", "--check-hash-based-pycs"):
            rest = rest[1:]
        elif not argument.startswith("-"):
            name = PurePath(argument).name
            return Command(name, argument, True, tuple(rest))
    return Command(program, "", True, ())


def launcher_of(argv: Sequence[str], *, general: bool = False) -> str | None:
    """Which launcher of training a command is; with `general` also those that start anything."""
    command = parse(argv)
    for module, launcher in _MODULE_LAUNCHERS.items():
        if command.program == module or command.program.startswith(module + "."):
            return launcher
    found = _COMMAND_LAUNCHERS.get(command.program)
    if found:
        launcher, subcommands = found
        if not subcommands or subcommands & set(command.arguments[:3]):
            return launcher
    if not general:
        return None
    if command.program.startswith("ray::"):
        return "ray"
    return _GENERAL_LAUNCHERS.get(command.program)


def is_shell(argv: Sequence[str]) -> bool:
    """Whether a shell runs it."""
    return parse(argv).program in _SHELLS


def is_wrapper(argv: Sequence[str]) -> bool:
    """Whether a shell runs a script or a line of code, rather than sitting at a prompt."""
    command = parse(argv)
    if command.program not in _SHELLS:
        return False
    return any(not a.startswith("-") and not a.startswith("/dev/fd") for a in command.arguments)


def is_python(argv: Sequence[str]) -> bool:
    """Whether a Python interpreter runs it."""
    return parse(argv).python


def is_excluded(argv: Sequence[str]) -> bool:
    """Editors, readers, notebook and inference servers, test runners, and this tool itself."""
    command = parse(argv)
    if not command.program or _EDITORS_AND_READERS.fullmatch(command.program):
        return True
    names = {command.program.removesuffix(".py"), command.entry.partition(".")[0]}
    if command.entry and PurePath(command.entry).name in ("__main__.py", "__main__"):
        names.add(PurePath(command.entry).parent.name)
    return any(_NOT_TRAINING.fullmatch(name) for name in names)


def training_score(argv: Sequence[str]) -> int:
    """How much a command line looks like training: 3 is enough by itself, 0 says nothing."""
    command = parse(argv)
    if is_excluded(argv) or command.program in _SHELLS or command.program in _GENERAL_LAUNCHERS:
        return 0
    if launcher_of(argv):
        return 4
    score = 0
    if _TRAIN_WORD.search(command.program.lower().removesuffix(".py")):
        score += 3
    if not command.python:
        # Compiled trainers (llm.c's train_gpt2cu): the name and options, nothing else is told.
        return score if command.program.lower().startswith(("train", "pretrain", "finetune")) else 0
    if command.inline or not command.entry:
        return 0
    if command.arguments[:1] and command.arguments[0].lower() in _SUBCOMMANDS:
        score += 3
    if _OTHER_WORD.search(PurePath(command.program).stem.lower()):
        score -= 2
    options = [option_name(argument) for argument in command.arguments]
    hyperparameters = sum(bool(_HYPERPARAMETER.fullmatch(option.lower())) for option in options)
    score += min(hyperparameters, 2)
    if any(_CONFIG_OPTION.fullmatch(option) for option in options) or any(
        argument.endswith((".yaml", ".yml")) for argument in command.arguments
    ):
        score += 1
    return max(score, 0)


def option_name(argument: str) -> str:
    """`--lr` of `--lr=1e-3`, `lr` of `lr=1e-3`; empty for a plain word."""
    name, separator, _ = argument.partition("=")
    return name if separator or name.startswith("-") else ""


def options_of(arguments: Sequence[str]) -> list[tuple[str, str]]:
    """Options and overrides with their values, in order; plain words as ("", word).

    A word that follows an option without `=` is taken as its value.
    """
    found: list[tuple[str, str]] = []
    waiting = ""
    for argument in arguments:
        name, separator, value = argument.partition("=")
        if waiting and not argument.startswith("-"):
            found.append((waiting, argument))
            waiting = ""
        elif separator:
            found.append((name, value))
            waiting = ""
        elif argument.startswith("-"):
            waiting = argument
        else:
            found.append(("", argument))
    return found


def _inner(argv: Sequence[str]) -> tuple[str, ...]:
    """The arguments that follow the script, also where a launcher stands before it."""
    arguments = parse(argv).arguments
    if launcher_of(argv, general=True):
        for index, argument in enumerate(arguments):
            if argument.endswith(".py") and (index == 0 or arguments[index - 1] != "--config_file"):
                return arguments[index + 1 :]
    return arguments


def find_config(argv: Sequence[str], exists: Callable[[str], bool]) -> str | None:
    """The training config a command names, as written; `exists` tells whether a path is a file.

    An option named for it goes before a plain argument; a Python file counts only where it is
    named or placed as a config; configs of a launcher, of DeepSpeed and the like are passed over.
    """
    arguments = _inner(argv)
    options = options_of(arguments)
    by_name = {name.lstrip("-"): value for name, value in options if name}
    if "config-name" in by_name or "config_name" in by_name:
        folder = by_name.get("config-path", by_name.get("config_path", "."))
        stem = by_name.get("config-name", by_name.get("config_name", ""))
        for suffix in ("", ".yaml", ".yml"):
            path = str(PurePath(folder) / (stem + suffix))
            if path.endswith(CONFIG_SUFFIXES) and exists(path):
                return path
    named = [
        value
        for name, value in options
        if name and _CONFIG_OPTION.fullmatch(name) and not _NOT_CONFIG.fullmatch(name)
    ]
    plain = [
        value
        for name, value in options
        if not name and (not value.endswith(".py") or "conf" in value.lower())
    ]
    for value in named + plain:
        if value.lower().endswith(CONFIG_SUFFIXES) and exists(value):
            return value
    return None


def find_model(argv: Sequence[str]) -> str | None:
    """The model a command names: a path or a hub's name."""
    by_name = {
        name.lstrip("-").replace("-", "_"): v for name, v in options_of(_inner(argv)) if name
    }
    for name in MODEL_OPTIONS:
        value = by_name.get(name)
        if value and not value.startswith("-"):
            return value
    return None
