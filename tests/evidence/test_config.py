"""The config reader: every kind of file, hostile ones, and the facts of many trainers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwarden.evidence.config import (
    ConfigError,
    find_config,
    load_config,
    load_model_config,
    training_facts,
)
from trainwarden.evidence.config_facts import flatten
from trainwarden.records.facts import planned_steps


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text), encoding="utf-8")
    return path


def facts_of(folder: Path, name: str, text: str) -> dict[str, Any]:
    facts = asdict(training_facts(load_config(write(folder, name, text))))
    keys = facts.pop("keys")
    assert set(keys) == {name for name, value in facts.items() if value is not None}
    return {name: value for name, value in facts.items() if value is not None}


# --- files -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.yaml", "train:\n  lr: 1e-4\n"),
        ("c.json", '{"train": {"lr": "1e-4"}}'),
        ("c.toml", '[train]\nlr = "1e-4"\n'),
        ("c.py", 'train = dict(lr="1e-4")\n'),
        ("c.conf", '{"train": {"lr": "1e-4"}}'),
        ("settings", "train:\n  lr: 1e-4\n"),
    ],
)
def test_formats_agree(tmp_path: Path, name: str, text: str) -> None:
    path = write(tmp_path, name, text)
    assert load_config(path) == {"train": {"lr": "1e-4"}}


def test_json_with_comments_trailing_commas_and_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text('{"url": "http://x/*y*/", // z, }\n /* "a": 1 */ "lr": [0.5, /* b */ ],\n}')
    assert load_config(path) == {"url": "http://x/*y*/", "lr": [0.5]}
    path.write_bytes(b'\xef\xbb\xbf{"lr": 0.5,}')
    assert load_config(path) == {"lr": 0.5}
    path.write_bytes('{"lr": 0.5}'.encode("utf-16"))
    assert load_config(path) == {"lr": 0.5}


def test_yaml_documents_tags_dates_and_anchors(tmp_path: Path) -> None:
    data = load_config(
        write(
            tmp_path,
            "c.yaml",
            """\
            base: &base {lr: 0.1, steps: 10}
            when: 2024-02-31
            extra: !include other.yaml
            1: one
            ---
            run:
              <<: *base0
              steps: 20
            """.replace("*base0", "{lr: 0.1}"),
        )
    )
    assert data["base"] == {"lr": 0.1, "steps": 10}
    assert data["when"] == "2024-02-31"
    assert data["extra"] == "other.yaml"
    assert data["1"] == "one"
    assert data["run"] == {"lr": 0.1, "steps": 20}


def test_yaml_merge_keys(tmp_path: Path) -> None:
    text = "base: &b {lr: 0.1}\nrun: {<<: *b, steps: 5}\n"
    assert load_config(write(tmp_path, "c.yaml", text))["run"] == {"lr": 0.1, "steps": 5}


@pytest.mark.parametrize(
    "text",
    [
        "a: !!python/object/apply:os.system ['touch {mark}']",
        "!!python/object/new:subprocess.Popen [['touch', '{mark}']]",
        "a: !<tag:yaml.org,2002:python/name:os.system> x",
        "%TAG ! tag:yaml.org,2002:python/\n---\na: !object/apply:os.system ['touch {mark}']",
    ],
)
def test_python_tags_are_refused_and_never_run(tmp_path: Path, text: str) -> None:
    mark = tmp_path / "mark"
    with pytest.raises(ConfigError, match=r"line \d+ has the tag .*never followed"):
        load_config(write(tmp_path, "c.yaml", text.replace("{mark}", str(mark))))
    assert not mark.exists()


def test_alias_bombs_are_refused_at_once(tmp_path: Path) -> None:
    lists = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    merges = ["a0: &a0 {x: 1}"]
    for level in range(1, 12):
        refs = ", ".join([f"*a{level - 1}"] * 10)
        lists.append(f"a{level}: &a{level} [{refs}]")
        merges.append(f"a{level}: &a{level} {{<<: [{refs}], k{level}: 1}}")
    for lines in (lists, merges, ["a: &a [*a]"], ["a: &a {<<: *a}"]):
        begun = time.process_time()
        with pytest.raises(ConfigError):
            load_config(write(tmp_path, "c.yaml", "\n".join(lines)))
        assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.yaml", "[" * 50_000),
        ("c.yaml", "a:\n" + "".join(" " * n + "- \n" for n in range(1, 300))),
        ("c.json", '{"a":' + "[" * 100_000),
        ("c.toml", "a = " + "[" * 20_000),
        ("c.toml", "a." * 50_000 + "a = 1"),
        ("c.py", "x = " + "1+" * 200_000 + "1"),
        ("c.py", "x = " + "-" * 200_000 + "1"),
        ("c.py", "x" + ".y" * 200_000 + " = 1"),
        ("c.py", "x = f()" + "()" * 200_000),
        ("c.py", "x = " + "lambda:" * 20_000 + "1"),
        ("c.py", 'x = f"{' + "1+" * 100_000 + '1}"'),
        ("c.py", "if a: pass\n" + "elif a: pass\n" * 50_000),
    ],
)
def test_deep_nesting_is_an_error_and_no_crash(tmp_path: Path, name: str, text: str) -> None:
    """In a process of its own: a parser that overflows the stack would take the tests along."""
    code = (
        "import sys, pathlib\n"
        "from trainwarden.evidence.config import load_config, ConfigError\n"
        "try: load_config(pathlib.Path(sys.argv[1]))\n"
        "except ConfigError: pass\n"
        "print('survived')\n"
    )
    path = write(tmp_path, name, text)
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "survived\n", done.stderr[-500:]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"  \n\t\n", "is empty"),
        (b"\x80\x02}q\x00X\x02", "is not text"),
        (b"abc\x00def", "is binary"),
        (b"just a sentence\nand one more\n", "cannot be read"),
        (b"- a\n- b\n", "holds a list"),
        (b"a: [1, 2", "line"),
    ],
)
def test_what_is_no_config_is_said_clearly(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=says) as caught:
        load_config(path)
    assert "c.yaml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_folder_fifo_huge_and_unreadable(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load_config(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="is a folder"):
        load_config(tmp_path)
    fifo = tmp_path / "fifo.yaml"
    os.mkfifo(fifo)
    with pytest.raises(ConfigError, match="not a regular file"):
        load_config(fifo)
    huge = tmp_path / "huge.yaml"
    with huge.open("wb") as file:
        file.truncate(5 * 1024 * 1024)
    with pytest.raises(ConfigError, match="more than the"):
        load_config(huge)
    with pytest.raises(ConfigError):
        load_config(Path("nul\0byte.yaml"))


@settings(max_examples=300, deadline=None)
@given(
    content=st.one_of(
        st.binary(max_size=300),
        st.text(max_size=300).map(lambda text: text.encode("utf-8", "surrogatepass")),
        st.text(
            alphabet=st.sampled_from("abc:=-[]{},\"'#&*!|>%@`\n \t.0e1()_~<"), max_size=120
        ).map(str.encode),
    ),
    suffix=st.sampled_from([".yaml", ".json", ".toml", ".py", ".cfg", ""]),
)
@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
def test_only_config_errors(content: bytes, suffix: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"config{suffix}"
        path.write_bytes(content)
        try:
            data = load_config(path)
        except ConfigError:
            return
    json.dumps(data)
    training_facts(data)


FACT_KEYS = [
    "max_steps", "lr", "learning_rate", "warmup_steps", "warmup_ratio", "epochs", "steps", "rl",
    "value", "batch_size", "devices", "min_lr_ratio", "save_steps", "id2label", "schedule",
    "param_scheduler",
]  # fmt: skip
_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=10,
)


@settings(max_examples=300, deadline=None)
@given(
    config=st.dictionaries(
        st.one_of(
            st.text(max_size=12),
            st.sampled_from(FACT_KEYS),
        ),
        _VALUES,
        max_size=8,
    )
)
def test_facts_never_raise_and_stay_in_range(config: dict[str, Any]) -> None:
    facts = training_facts(config, config)
    assert facts.max_steps is None or facts.max_steps > 0
    assert facts.learning_rate is None or facts.learning_rate > 0
    assert facts.warmup_ratio is None or 0 <= facts.warmup_ratio < 1
    assert planned_steps(facts) is None or planned_steps(facts) > 0  # type: ignore[operator]


# --- Python ----------------------------------------------------------------------------------


def test_python_is_read_and_never_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    data = load_config(
        write(
            tmp_path,
            "train_config.py",
            f"""\
            import os
            os.mkdir({str(mark)!r})
            out_dir = 'out-shakespeare'
            gradient_accumulation_steps = 5 * 8
            batch_size = 12
            learning_rate = 6e-4
            max_iters = 600_000
            lr_decay_iters = max_iters
            min_lr = learning_rate / 10
            huge = 9 ** 9 ** 9
            zero = 1 / 0
            device = os.environ.get('DEVICE')
            compile = True
            overridden = 1
            overridden = os.getpid()
            model = dict(type='ResNet', head=dict(num_classes=10))
            cfg = ConfigDict()
            cfg.optim.lr = 3e-4
            cfg['seed'] = 7
            a, b = 1, -2
            """,
        )
    )
    assert not mark.exists()
    assert data["gradient_accumulation_steps"] == 40
    assert data["lr_decay_iters"] == 600_000
    assert data["min_lr"] == pytest.approx(6e-5)
    assert data["model"]["head"]["num_classes"] == 10
    assert data["cfg"] == {"optim": {"lr": 3e-4}, "seed": 7}
    assert (data["a"], data["b"]) == (1, -2)
    assert not {"huge", "zero", "device", "overridden", "os"} & set(data)


def test_python_dataclasses_calls_functions_and_arguments(tmp_path: Path) -> None:
    data = load_config(
        write(
            tmp_path,
            "c.py",
            """\
            from dataclasses import dataclass, field

            @dataclass
            class TrainConfig:
                lr: float = 3e-4
                betas: tuple = (0.9, 0.95)
                epochs: int = field(default=3)
                name: str = make_name()

            def main():
                lr = 5
                args = TrainingArguments(output_dir="out", max_steps=500, seed=seed())
                parser.add_argument("--weight-decay", "-w", type=float, default=0.1)
                parser.add_argument("--flag", action="store_true")

            if __name__ == "__main__":
                main()
            """,
        )
    )
    assert data["TrainConfig"] == {"lr": 3e-4, "betas": [0.9, 0.95], "epochs": 3}
    assert data["args"] == {"output_dir": "out", "max_steps": 500}
    assert data["weight_decay"] == 0.1
    assert "lr" not in data


# --- facts -----------------------------------------------------------------------------------


def test_hugging_face(tmp_path: Path) -> None:
    assert facts_of(
        tmp_path,
        "hf.yaml",
        """\
        output_dir: out/run
        num_train_epochs: 3
        max_steps: -1
        per_device_train_batch_size: 8
        per_device_eval_batch_size: 64
        gradient_accumulation_steps: 4
        learning_rate: 2e-5
        lr_scheduler_type: cosine_with_min_lr
        lr_scheduler_kwargs: {min_lr_rate: 0.1}
        warmup_ratio: 0.03
        warmup_steps: 0
        logging_steps: 10
        save_strategy: epoch
        save_steps: 500
        eval_strategy: steps
        eval_steps: 200
        bf16: true
        metric_for_best_model: eval_loss
        greater_is_better: false
        """,
    ) == {
        "epochs": 3.0,
        "batch_size": 8,
        "accumulation": 4,
        "learning_rate": 2e-5,
        "min_learning_rate": pytest.approx(2e-6),
        "schedule": "cosine_with_min_lr",
        "warmup_ratio": 0.03,
        "log_every": 10,
        "eval_every": 200,
        "output_dir": "out/run",
        "precision": "bf16",
        "metric_for_best_model": "eval_loss",
        "greater_is_better": False,
    }


def test_shares_of_all_steps(tmp_path: Path) -> None:
    facts = facts_of(
        tmp_path, "hf.json", '{"max_steps": 1000, "save_steps": 0.1, "warmup_steps": 0.05}'
    )
    assert facts == {"max_steps": 1000, "save_every": 100, "warmup_ratio": 0.05}


def test_nanogpt(tmp_path: Path) -> None:
    facts = facts_of(
        tmp_path,
        "train_gpt2.py",
        """\
        out_dir = 'out'
        batch_size = 12
        block_size = 1024
        gradient_accumulation_steps = 5 * 8
        learning_rate = 6e-4
        max_iters = 600000
        warmup_iters = 2000
        lr_decay_iters = 600000
        decay_lr = True
        min_lr = 6e-5
        eval_interval = 1000
        eval_iters = 200
        log_interval = 10
        dtype = 'bfloat16'
        """,
    )
    assert facts == {
        "max_steps": 600_000,
        "batch_size": 12,
        "accumulation": 40,
        "sequence_length": 1024,
        "learning_rate": 6e-4,
        "min_learning_rate": 6e-5,
        "warmup_steps": 2000,
        "schedule": "cosine",
        "log_every": 10,
        "eval_every": 1000,
        "output_dir": "out",
        "precision": "bfloat16",
        "task": "lm",
    }


def test_torchtitan(tmp_path: Path) -> None:
    facts = facts_of(
        tmp_path,
        "debug.toml",
        """\
        [job]
        dump_folder = "./outputs"
        [metrics]
        log_freq = 1
        [optimizer]
        name = "AdamW"
        lr = 8e-4
        [lr_scheduler]
        warmup_steps = 2
        decay_ratio = 0.8
        decay_type = "linear"
        min_lr_factor = 0.1
        [training]
        local_batch_size = 8
        seq_len = 2048
        steps = 10
        [checkpoint]
        folder = "checkpoint"
        interval = 10
        [validation]
        steps = 10
        local_batch_size = 32
        freq = 5
        """,
    )
    assert facts == {
        "max_steps": 10,
        "batch_size": 8,
        "sequence_length": 2048,
        "learning_rate": 8e-4,
        "min_learning_rate": pytest.approx(8e-5),
        "warmup_steps": 2,
        "schedule": "wsd",
        "log_every": 1,
        "save_every": 10,
        "eval_every": 5,
        "output_dir": "./outputs",
    }


def test_lightning_cli(tmp_path: Path) -> None:
    facts = facts_of(
        tmp_path,
        "config.yaml",
        """\
        trainer:
          max_epochs: 90
          max_steps: -1
          devices: 4
          num_nodes: 2
          accumulate_grad_batches: 2
          precision: bf16-mixed
          log_every_n_steps: 50
          default_root_dir: runs
          callbacks:
            - class_path: lightning.pytorch.callbacks.ModelCheckpoint
              init_args: {every_n_train_steps: 1000, monitor: val/acc, mode: max}
        model: {class_path: m.Net, init_args: {num_classes: 1000}}
        data: {class_path: d.Data, init_args: {batch_size: 64}}
        optimizer: {class_path: torch.optim.AdamW, init_args: {lr: 0.001}}
        lr_scheduler: {class_path: torch.optim.lr_scheduler.CosineAnnealingLR}
        """,
    )
    assert facts == {
        "epochs": 90.0,
        "batch_size": 64 * 2 * 8,
        "accumulation": 2,
        "world_size": 8,
        "learning_rate": 0.001,
        "schedule": "cosine",
        "num_classes": 1000,
        "log_every": 50,
        "save_every": 1000,
        "output_dir": "runs",
        "precision": "bf16-mixed",
        "task": "classification",
        "metric_for_best_model": "val/acc",
        "greater_is_better": True,
    }


def test_deepspeed(tmp_path: Path) -> None:
    facts = facts_of(
        tmp_path,
        "ds.json",
        """\
        {"train_batch_size": 256, "train_micro_batch_size_per_gpu": 4,
         "gradient_accumulation_steps": "auto", "steps_per_print": 100,
         "optimizer": {"type": "AdamW", "params": {"lr": "3e-5"}},
         "scheduler": {"type": "WarmupDecayLR", "params":
            {"warmup_min_lr": 0, "warmup_max_lr": 3e-5, "warmup_num_steps": 500,
             "total_num_steps": 20000}},
         "fp16": {"enabled": true}}
        """,
    )
    assert facts == {
        "max_steps": 20_000,
        "batch_size": 256,
        "learning_rate": 3e-5,
        "warmup_steps": 500,
        "schedule": "linear",
        "log_every": 100,
        "precision": "fp16",
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "train-iters: 500000\nglobal-batch-size: 1536\nlr: 6.0e-5\nmin-lr: 6.0e-6\n"
            "lr-decay-style: cosine\nlr-warmup-fraction: .001\nseq-length: 2048\n"
            "save-interval: 1000\nsave: /ckpt/gpt\n",
            {"max_steps": 500_000, "batch_size": 1536, "min_learning_rate": 6e-6,
             "warmup_ratio": 0.001, "sequence_length": 2048, "save_every": 1000,
             "output_dir": "/ckpt/gpt", "schedule": "cosine"},
        ),
        (
            "micro_batch_size: 2\nnum_epochs: 4\nsequence_len: 4096\nlr_scheduler: cosine\n"
            "learning_rate: 0.0002\ngradient_accumulation_steps: 4\nsaves_per_epoch: 1\n",
            {"epochs": 4.0, "batch_size": 2, "sequence_length": 4096, "accumulation": 4},
        ),
        (
            "stage: sft\ncutoff_len: 2048\nnum_train_epochs: 3.0\nlearning_rate: 1.0e-4\n",
            {"task": "lm", "sequence_length": 2048, "epochs": 3.0, "learning_rate": 1e-4},
        ),
        (
            "sched: cosine\nepochs: 300\nwarmup_epochs: 5\nlr: 0.001\nnum_classes: 100\n"
            "batch_size: 128\n",
            {"epochs": 300.0, "warmup_ratio": 5 / 300, "num_classes": 100, "schedule": "cosine"},
        ),
        (
            "task: detect\nepochs: 100\nbatch: 16\nlr0: 0.01\nlrf: 0.01\ncos_lr: false\n"
            "save_dir: runs/train\nsave: true\n",
            {"epochs": 100.0, "batch_size": 16, "learning_rate": 0.01, "schedule": "linear",
             "min_learning_rate": 1e-4, "output_dir": "runs/train"},
        ),
        (
            "n_timesteps: !!float 1e7\nlearning_rate: lin_2.5e-4\nbatch_size: 256\nn_envs: 8\n",
            {"max_steps": 10_000_000, "learning_rate": 2.5e-4, "schedule": "linear", "task": "rl"},
        ),
        (
            "max_duration: 4800ba\noptimizer: {name: adamw, lr: 6.0e-4}\n"
            "scheduler: {name: cosine_with_warmup, t_warmup: 100ba, alpha_f: 0.1}\n"
            "global_train_batch_size: 256\nmax_seq_len: 2048\nsave_interval: 500ba\n",
            {"max_steps": 4800, "warmup_steps": 100, "schedule": "cosine", "batch_size": 256,
             "min_learning_rate": 6e-5, "save_every": 500},
        ),
        ("max_duration: 2ep\nlr: 0.1\n", {"epochs": 2.0}),
        (
            "trainer: {total_epochs: 15, n_gpus_per_node: 8, nnodes: 2, save_freq: 20}\n"
            "data: {train_batch_size: 1024}\ncritic: {optim: {lr: 1e-5}}\n"
            "actor_rollout_ref: {actor: {optim: {lr: 1e-6}}}\n"
            "algorithm: {adv_estimator: grpo}\n",
            {"epochs": 15.0, "world_size": 16, "batch_size": 1024, "learning_rate": 1e-6,
             "save_every": 20, "task": "rl"},
        ),
        (
            "SOLVER: {MAX_ITER: 90000, BASE_LR: 0.02, IMS_PER_BATCH: 16, CHECKPOINT_PERIOD: 5000,"
            " WARMUP_ITERS: 1000}\nTEST: {EVAL_PERIOD: 2500}\nOUTPUT_DIR: ./output\n"
            "MODEL: {ROI_HEADS: {NUM_CLASSES: 80}}\n",
            {"max_steps": 90_000, "learning_rate": 0.02, "batch_size": 16, "save_every": 5000,
             "warmup_steps": 1000, "num_classes": 80, "output_dir": "./output"},
        ),
        (
            "learning_rate: {desc: null, value: 0.001}\nepochs: {desc: null, value: 5}\n",
            {"learning_rate": 0.001, "epochs": 5.0},
        ),
    ],
)  # fmt: skip
def test_other_trainers(tmp_path: Path, text: str, expected: dict[str, Any]) -> None:
    facts = facts_of(tmp_path, "c.yaml", text)
    for name, value in expected.items():
        assert facts.get(name) == (pytest.approx(value) if isinstance(value, float) else value), (
            name
        )


def test_mmengine(tmp_path: Path) -> None:
    facts = facts_of(
        tmp_path,
        "deeplab.py",
        """\
        _base_ = ['../_base_/models/deeplab.py']
        model = dict(type='EncoderDecoder', decode_head=dict(num_classes=19))
        train_cfg = dict(type='IterBasedTrainLoop', max_iters=80000, val_interval=8000)
        optim_wrapper = dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.01))
        param_scheduler = [
                dict(type='LinearLR', start_factor=0.1, by_epoch=False, begin=0, end=500),
                dict(type='PolyLR', eta_min=1e-4, power=0.9, begin=500, end=80000)]
        train_dataloader = dict(batch_size=2, num_workers=2)
        val_dataloader = dict(batch_size=1)
        default_hooks = dict(logger=dict(interval=50), checkpoint=dict(interval=8000))
        work_dir = './work_dirs/deeplab'
        """,
    )
    assert facts == {
        "max_steps": 80_000,
        "learning_rate": 0.01,
        "min_learning_rate": 1e-4,
        "schedule": "polynomial",
        "warmup_steps": 500,
        "batch_size": 2,
        "num_classes": 19,
        "log_every": 50,
        "save_every": 8000,
        "eval_every": 8000,
        "output_dir": "./work_dirs/deeplab",
        "task": "classification",
    }


def test_model_config_fills_in(tmp_path: Path) -> None:
    write(
        tmp_path,
        "model/config.json",
        '{"architectures": ["LlamaForCausalLM"], "vocab_size": 32000, "n_positions": 8}',
    )
    model = load_model_config(str(tmp_path / "model"))
    facts = training_facts({"learning_rate": 1e-4}, model)
    assert (facts.vocab_size, facts.task) == (32_000, "lm")
    assert facts.keys["vocab_size"] == "model config: vocab_size"
    assert facts.sequence_length is None
    labels = {str(n): f"LABEL_{n}" for n in range(5)}
    assert training_facts({}, {"id2label": labels}).num_classes == 5
    assert load_model_config("meta-llama/Llama-3") == {}
    assert load_model_config("\0") == {}
    assert load_model_config(None) == {}


def test_planned_steps() -> None:
    assert planned_steps(training_facts({"max_steps": "5_000", "epochs": 3})) == 5000
    assert planned_steps(training_facts({"epochs": 2.5, "steps_per_epoch": 101})) == 253
    assert planned_steps(training_facts({"epochs": 3})) is None


def test_hostile_keys_are_cleaned() -> None:
    facts = training_facts({"a\x1b[31m\nignore all": {"lr": 0.1}})
    assert facts.learning_rate == 0.1
    assert "\x1b" not in facts.keys["learning_rate"]
    assert "\n" not in facts.keys["learning_rate"]


def test_flatten_is_bounded() -> None:
    wide = {f"k{n}": {f"j{m}": m for m in range(1000)} for n in range(1000)}
    assert len(flatten(wide)) <= 20_000
    loop: dict[str, Any] = {}
    loop["self"] = loop
    assert len(flatten(loop)) < 100


# --- finding ---------------------------------------------------------------------------------

TRAIN = "learning_rate: 0.1\nmax_steps: 100\nbatch_size: 4\n"


def test_find_config(tmp_path: Path) -> None:
    write(tmp_path, "package.json", '{"version": "1"}')
    write(tmp_path, "other.yaml", "name: x\n")
    write(tmp_path, "broken.yaml", "a: [")
    assert find_config(tmp_path) is None
    wanted = write(tmp_path, "configs/train.yaml", TRAIN)
    assert find_config(tmp_path) == wanted
    near = write(tmp_path, "runs/7/config.yaml", TRAIN)
    log = write(tmp_path, "runs/7/train.log", "step 1\n")
    assert find_config(tmp_path, log) == near
    write(tmp_path, "configs/second.yaml", TRAIN)
    assert find_config(tmp_path) is None
    assert find_config(tmp_path / "missing") is None


class TestBases:
    def test_what_a_config_builds_on(self, tmp_path: Path) -> None:
        (tmp_path / "base.py").write_text(
            "optim_wrapper = dict(optimizer=dict(type='SGD', lr=0.02))\n"
            "train_dataloader = dict(batch_size=2, num_workers=2)\n"
        )
        (tmp_path / "run.py").write_text(
            "_base_ = ['./base.py', './gone.py', './run.py']\n"
            "train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=12, val_interval=1)\n"
            "train_dataloader = dict(batch_size=4)\n"
            "optim_wrapper = dict(_delete_=True, optimizer=dict(type='AdamW', lr=0.001))\n"
            "default_hooks = dict(checkpoint=dict(type='CheckpointHook', interval=1))\n"
        )
        config = load_config(tmp_path / "run.py")
        assert config["train_dataloader"] == {"batch_size": 4, "num_workers": 2}
        facts = training_facts(config)
        assert (facts.epochs, facts.batch_size, facts.learning_rate) == (12, 4, 0.001)
        # An interval of epochs is none of steps.
        assert (facts.save_every, facts.eval_every) == (None, None)

    def test_a_circle_of_bases_ends(self, tmp_path: Path) -> None:
        for name, other in (("a", "b"), ("b", "a")):
            (tmp_path / f"{name}.yaml").write_text(f"_BASE_: {other}.yaml\n{name}: 1\n")
        assert load_config(tmp_path / "a.yaml") == {"_BASE_": "b.yaml", "a": 1, "b": 1}
