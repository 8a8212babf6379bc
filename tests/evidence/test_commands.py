"""What command lines tell of a training."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwarden.evidence import commands

LAUNCHERS = {
    "torchrun --nproc_per_node=8 train.py": "torchrun",
    "/usr/bin/python3.11 /usr/local/bin/torchrun train.py": "torchrun",
    "python -u -m torch.distributed.run --nnodes 2 train.py": "torchrun",
    "python -m torch.distributed.launch train.py": "torchrun",
    "/v/bin/python /v/bin/accelerate launch --config_file a.yaml train.py": "accelerate",
    "deepspeed --num_gpus 8 train.py --deepspeed ds.json": "deepspeed",
    "python -m deepspeed.launcher.launch --world_info=x train.py": "deepspeed",
    "python /x/bin/lightning run model train.py": "lightning",
    "axolotl train config.yml": "axolotl",
    "python -m axolotl.cli.train config.yml": "axolotl",
    "python /x/bin/llamafactory-cli train sft.yaml": "llamafactory",
    "python /x/bin/trl sft --model_name_or_path m": "trl",
    "tune run lora_finetune_single_device --config llama": "torchtune",
}
TRAININGS = [
    "python train.py config/train_gpt2.py",
    "python3 -u pretrain_gpt.py --num-layers 24",
    "python -m verl.trainer.main_ppo data.train=x",
    "python -m lib.scripts.finetune --config a.yaml",
    "python examples/run_clm.py --model_name_or_path gpt2",
    "python grpo_trainer.py",
    "python cli.py fit --config a.yaml",
    "python main.py train --lr 1",
    "python main.py --config a.yaml --lr 1 --epochs 3",
    "./train_gpt2cu -i data.bin",
    *LAUNCHERS,
]
OTHERS = [
    "",
    "python",
    "python -c train()",
    "python -m pytest tests/test_train.py",
    "python /x/bin/pytest train.py",
    "python -m trainwarden run --config train.yaml",
    "python /x/bin/trainwarden run",
    "python -m trainwarden.evidence.nvml",
    "vim train.py",
    "nvim config.yaml",
    "tail -f train.log",
    "tee train.log",
    "grep -r train .",
    "python -m jupyter lab --port 1",
    "python /x/bin/jupyter-lab",
    "python -m ipykernel_launcher -f train.json",
    "python -m vllm.entrypoints.api_server --model m",
    "python prepare_data.py --config a.yaml",
    "python eval.py --config a.yaml",
    "tensorboard --logdir runs",
    "accelerate config",
    "llamafactory-cli webui",
    "bash train.sh",
    "srun hostname",
    "python constrain.py",
    "python /home/train/server.py",
]


@pytest.mark.parametrize("line", LAUNCHERS)
def test_launchers_are_known(line: str) -> None:
    assert commands.launcher_of(line.split()) == LAUNCHERS[line]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("mpirun -np 8 python train.py", "mpirun"),
        ("srun python train.py", "srun"),
        ("ray::PPOTrainer.train()", "ray"),
        ("timeout 5 python train.py", "timeout"),
    ],
)
def test_what_starts_anything_is_a_launcher_only_in_general(line: str, kind: str) -> None:
    assert commands.launcher_of(line.split()) is None
    assert commands.launcher_of(line.split(), general=True) == kind


@pytest.mark.parametrize("line", TRAININGS)
def test_trainings_are_recognised(line: str) -> None:
    assert commands.training_score(line.split()) >= 3


@pytest.mark.parametrize("line", OTHERS)
def test_other_things_are_not(line: str) -> None:
    assert commands.training_score(line.split()) < 3


@pytest.mark.parametrize(
    ("line", "config"),
    [
        ("python train.py --config a.yaml", "a.yaml"),
        ("python train.py --config=a.yaml", "a.yaml"),
        ("python train.py -c a.yaml b.json", "a.yaml"),
        ("python train.py --train_file b.json", None),
        ("python train.py b.json", "b.json"),
        ("python train.py config/x.py", "config/x.py"),
        ("python train.py config=a.yaml lr=1", "a.yaml"),
        ("python train.py --lr 1 --train_config_file a.yaml", "a.yaml"),
        ("python train.py --deepspeed b.json --config a.yaml", "a.yaml"),
        ("python train.py --deepspeed b.json --fsdp_config b.json", None),
        ("python train.py --config-path conf --config-name base", "conf/base.yaml"),
        ("accelerate launch --config_file b.json train.py --config a.yaml", "a.yaml"),
        ("torchrun --nproc_per_node=2 train.py a.yaml", "a.yaml"),
        ("axolotl train a.yaml", "a.yaml"),
        ("python train.py --config missing.yaml", None),
        ("python train.py --config", None),
        ("python train.py", None),
    ],
)
def test_the_config_is_found(line: str, config: str | None) -> None:
    files = {"a.yaml", "b.json", "config/x.py", "conf/base.yaml", "train.py"}
    assert commands.find_config(line.split(), files.__contains__) == config


@pytest.mark.parametrize(
    ("line", "model"),
    [
        ("python train.py --model_name_or_path org/m --lr 1", "org/m"),
        ("python train.py --model-name-or-path=org/m", "org/m"),
        ("python train.py --model org/m", "org/m"),
        ("torchrun --nnodes 1 train.py --base_model org/m", "org/m"),
        ("python -m verl.trainer.main_ppo actor_rollout_ref.model.path=/m", "/m"),
        ("python train.py --model --lr 1", None),
        ("python train.py", None),
    ],
)
def test_the_model_is_found(line: str, model: str | None) -> None:
    assert commands.find_model(line.split()) == model


WORDS = st.sampled_from(
    ["python", "-m", "-c", "-X", "--config", "a.yaml", "=", "torchrun", "train.py", "--", "", "-"]
)


@given(st.lists(st.one_of(WORDS, st.text(max_size=12)), max_size=12))
def test_any_command_line_is_borne(argv: list[str]) -> None:
    assert commands.training_score(argv) >= 0
    commands.launcher_of(argv, general=True)
    commands.is_wrapper(argv)
    named = commands.find_config(argv, lambda path: bool(path))
    assert named is None or named.lower().endswith(commands.CONFIG_SUFFIXES)
    commands.find_model(argv)
