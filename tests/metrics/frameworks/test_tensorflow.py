"""Keras (bars of both versions, quiet ones), TensorFlow's Estimator, Orbit, BigDL."""

from __future__ import annotations

import pytest

from support.logs import Log, check, lines, loss

ABSL = "I0802 10:05:16.455692 139878636152640 controller.py:391] "
T = "INFO:tensorflow:"
B = "2019-03-01 10:00:00 INFO  DistriOptimizer$:408 - "


def keras2(e: int) -> str:
    bars = "".join(
        f"\r {n:3d}/100 [{'=' * (n // 10)}{'>' if n < 100 else '='}{'.' * (10 - n // 10)}] - ETA: "
        f"{100 - n}s - loss: {loss(e * 10 + n / 100):.4f} - accuracy: 0.{n:03d}"
        for n in (1, 50, 100)
    )
    return (
        f"Epoch {e}/3\n{bars}\x08\x08\x08\r100/100 [==========] - 4s 40ms/step - "
        f"loss: {loss(e * 10):.4f} - accuracy: 0.5 - val_loss: 1.{e} - lr: 0.001\n"
    )


def keras3(e: int, last: bool = True) -> str:
    def drawn(n: int, left: str, more: str) -> str:
        full = n // 5
        return (
            f"\r\x1b[1m{n:3d}/100\x1b[0m \x1b[32m{'━' * full}\x1b[0m\x1b[37m{'━' * (20 - full)}"
            f"\x1b[0m \x1b[1m{left}\x1b[0m 30ms/step - accuracy: 0.5000 - loss: {more}"
        )

    # At the last batch no time is left; after the validation the time that the epoch took.
    bars = "".join(drawn(n, f"{(100 - n) // 50}s", "2.9000") for n in (1, 50, 100))
    end = drawn(100, "4s", f"{loss(e):.4f} - val_accuracy: 0.6000 - val_loss: 1.{e}\n")
    return f"Epoch {e}/3\n{bars}{end if last else ''}"


def orbit(n: int, head: str = "") -> str:
    return (
        f"{head}train | step: {n:6d} | steps/sec:    3.2 | output: \n    {{'accuracy': 0.5,\n"
        f"     'learning_rate': 0.1,\n     'training_loss': {loss(n)}}}\n"
    )


THREE = {"loss": (3, (100, 2.98), (300, 2.94)), "eval_loss": (3, (100, 1.1), (300, 1.3))}
LOGS: dict[str, Log] = {
    "keras 2": (
        "".join(keras2(e) for e in (1, 2, 3)),
        {"last_step": 300, "total_steps": 300, "ended": "finished", "runs": 1},
        {
            "loss": (3, (100, 2.8), (300, 2.4)),
            "eval_loss": (3, (100, 1.1), (300, 1.3)),
            "learning_rate": (3, (100, 0.001), (300, 0.001)),
        },
    ),
    "keras 2 in the middle of an epoch": (
        keras2(1) + "Epoch 2/3\n\r  1/100 [..........] - ETA: 3s - loss: 2.5 - accuracy: 0.1"
        "\r 50/100 [====>.....] - ETA: 1s - loss: 2.4 - accuracy: 0.2",
        {"last_step": 150, "total_steps": 300, "ended": "running"},
        {"loss": (1, (100, 2.8), (100, 2.8))},
    ),
    "keras 3": (
        "".join(keras3(e) for e in (1, 2, 3)),
        {"last_step": 300, "total_steps": 300, "ended": "finished"},
        {**THREE, "accuracy": (3, (100, 0.5), (300, 0.5))},
    ),
    "keras 3 before a validation": (
        keras3(1) + keras3(2, last=False),
        {"last_step": 200, "total_steps": 300, "ended": "running"},
        {"loss": (1, (100, 2.98), (100, 2.98))},
    ),
    "keras 3 as a notebook keeps it": (
        # Only the last redraw of each line.
        "".join(
            f"Epoch {e}/3\n100/100 ━━━━━━━━━━ 0s 3ms/step - loss: {loss(e)} - val_loss: 1.{e}\n"
            for e in (1, 2, 3)
        ),
        {"last_step": 300, "ended": "finished"},
        THREE,
    ),
    "a line an epoch": (
        "".join(
            f"Epoch {e}/5\n100/100 - 3s - 30ms/step - loss: {loss(e)} - val_loss: 1.{e}\n"
            for e in (1, 2, 3)
        ),
        {"last_step": 300, "total_steps": 500, "ended": "running"},
        {**THREE, "step_time": (3, (100, 0.03), (300, 0.03))},
    ),
    "a line an epoch, of old": (
        "".join(f"Epoch {e}/5\n - 3s - loss: {loss(e)} - val_loss: 1.{e}\n" for e in (1, 2, 3)),
        {"last_step": 3, "total_steps": 5, "ended": "running"},
        {"loss": (3, (1, 2.98), (3, 2.94)), "eval_loss": (3, (1, 1.1), (3, 1.3))},
    ),
    "words of a checkpoint, and an evaluation after training": (
        "".join(
            f"Epoch {e}/3\n100/100 [=====] - ETA: 0s - loss: {loss(e)} - accuracy: 0.5\n"
            f"Epoch {e}: val_loss improved from inf to 1.{e}, saving model to x.h5\n"
            f"100/100 [=====] - 4s 40ms/step - loss: {loss(e)} - accuracy: 0.5 - val_loss: 1.{e}\n"
            for e in (1, 2)
        )
        + "Epoch 2: early stopping\n 10/313 [>....] - ETA: 3s - loss: 0.8 - accuracy: 0.78"
        "\r313/313 [=====] - 1s 2ms/step - loss: 0.9 - accuracy: 0.77\nTest accuracy: 0.77\n",
        {"last_step": 200, "total_steps": 300},
        {
            "loss": (2, (100, 2.98), (200, 2.96)),
            "accuracy": (2, (100, 0.5), (200, 0.5)),
            "test_accuracy": (1, (200, 0.77), (200, 0.77)),
        },
    ),
    "CSVLogger": (
        "epoch,accuracy,loss,val_accuracy,val_loss\n" + lines("{i},0.5,{l},0.6,{e}"),
        {"last_step": 40, "format": "csv"},
        {"loss": (40, (1, 2.98), (40, 2.2)), "eval_loss": (40, (1, 3.08), (40, 2.3))},
    ),
    "estimator": (
        f"{T}Using config: {{'_model_dir': '/x', '_save_summary_steps': 100}}\n"
        + "".join(
            f"{T}loss = {loss(i / 100)}, step = {i} (3.1 sec)\n{T}global_step/sec: 32.1\n"
            for i in range(0, 1000, 100)
        )
        + f"{T}Saving checkpoints for 1000 into /x/model.ckpt.\n{T}Loss for final step: 0.25.\n"
        f"{T}Saving dict for global step 1000: accuracy = 0.91, global_step = 1000, loss = 1.4\n",
        {"last_step": 900, "ended": "finished"},
        {
            "loss": (11, (0, 3.0), (900, 0.25)),
            "eval_loss": (1, (1000, 1.4), (1000, 1.4)),
            "eval_accuracy": (1, (1000, 0.91), (1000, 0.91)),
        },
    ),
    "estimator, each line twice": (
        "".join(
            f"{T}loss = {loss(i / 100)}, step = {i} (3.1 sec)\nI0802 10:05:16.455692 1398 "
            f"basic_session_run_hooks.py:260] loss = {loss(i / 100)}, step = {i} (3.1 sec)\n"
            for i in range(0, 1001, 100)
        )
        + f"{T}***** Eval results *****\n{T}  eval_accuracy = 0.85\n{T}  eval_loss = 0.4\n",
        {"last_step": 1000, "ended": "running"},
        {
            "loss": (11, (0, 3.0), (1000, 2.8)),
            "eval_accuracy": (1, (1000, 0.85), (1000, 0.85)),
            "eval_loss": (1, (1000, 0.4), (1000, 0.4)),
        },
    ),
    "orbit": (
        # Each line is logged, and printed.
        "".join(orbit(n, ABSL) + orbit(n) for n in (10, 20, 30, 40))
        + f"{ABSL} eval | step:     40 | running complete evaluation...\n"
        f"{ABSL} eval | step:     40 | eval time:    2.2 sec | output: \n    {{'accuracy': 0.61,\n"
        "     'validation_loss': 1.5}\n",
        {"last_step": 40, "ended": "running"},
        {
            "loss": (4, (10, 2.8), (40, 2.2)),
            "learning_rate": (4, (10, 0.1), (40, 0.1)),
            "eval_loss": (1, (40, 1.5), (40, 1.5)),
            "eval_accuracy": (1, (40, 0.61), (40, 0.61)),
        },
    ),
    "orbit on one line": (
        lines(
            f"{ABSL}train | step:     {{i}} | steps/sec:    3.2 | output: {{{{'learning_rate': "
            "array(0.1, dtype=float32), 'training_loss': array({l}, dtype=float32)}}"
        ),
        {"last_step": 40},
        {"loss": (40, (1, 2.98), (40, 2.2)), "learning_rate": (40, (1, 0.1), (40, 0.1))},
    ),
    "bigdl": (
        "".join(
            f"{B}[Epoch {e} {i * 128}/60000][Iteration {(e - 1) * 469 + i}][Wall Clock {i}.5s] "
            f"Trained 128.0 records in 0.05 seconds. Throughput is 2400.1 records/second. Loss is "
            f"{loss(i / 10)}. Sequentialxx's hyper parameters: Current learning rate is 0.05. "
            "Current dampening is 1.7976931348623157E308.\n"
            for e in (1, 2)
            for i in (1, 100, 468)
        ),
        {"last_step": 937, "ended": "running", "runs": 1},
        {
            "loss": (6, (1, 2.998), (937, 2.064)),
            "learning_rate": (6, (1, 0.05), (937, 0.05)),
            "samples_per_second": (6, (1, 2400.1), (937, 2400.1)),
        },
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_what_is_printed(name: str) -> None:
    check(LOGS[name])
