"""Training loops of no framework, as people write their print statements."""

from __future__ import annotations

import pytest

from support.logs import EVERY, Log, Point, check, lines, loss, read

LOSS = (40, (1, 2.98), (40, 2.2))
EVAL = (40, (1, 3.08), (40, 2.3))


def both(template: str, last: int = 40) -> Log:
    """A loop that prints a line an epoch, with the losses of training and validation."""
    return lines(template), {"last_step": last}, {"loss": LOSS, "eval_loss": EVAL}


def alone(template: str, first: float = 1, last: float = 40) -> Log:
    """A loop that prints the training's loss alone."""
    series: tuple[int, Point, Point] = (40, (first, 2.98), (last, 2.2))
    return lines(template), {"last_step": int(last)}, {"loss": series}


LOGS: dict[str, Log] = {
    "two sides of a line": (
        lines("[Epoch {i}] Train: loss={l}, acc=0.81 | Val: loss={e}, acc=0.72"),
        {"last_step": 40},
        {
            "loss": LOSS,
            "eval_loss": EVAL,
            "accuracy": (40, (1, 0.81), (40, 0.81)),
            "eval_accuracy": (40, (1, 0.72), (40, 0.72)),
        },
    ),
    "two sides, told by the first name": both(
        "Epoch {i}: train loss {l} acc 0.8, val loss {e} acc 0.7"
    ),
    "two sides in brackets": both("[train] epoch {i}: loss {l}  [val] loss {e}"),
    "two sides with a semicolon": both("train: epoch {i}: loss {l} acc 0.9; val: loss {e} acc 0.8"),
    "sides alone": both("Epoch {i}/40 | train: {l} (4.1 bpd) | val: {e} (3.8 bpd) | lr: 0.001"),
    "glued names": both("Epoch={i} TrainLoss={l} ValLoss={e} ValAcc=0.7"),
    "loss at step": alone("loss at step {i}: {l}"),
    "loss after epoch": alone("Total loss after epoch {i} : {l}"),
    "loss with its epoch in parentheses": alone("Training loss (epoch {i}): {l}"),
    "glued epoch": alone("Ep{i} Loss: {l}"),
    "a short name": alone("[12:00] it {i} | l={l} | lr 1e-4"),
    "a count named i": (
        lines("epoch=0 i={i}/530 total_loss={l} mel_loss=0.25"),
        {"last_step": 40, "total_steps": None},
        {"loss": LOSS},
    ),
    "a place on a line of its own": (
        "".join(
            f"step {i} / 400 (epoch 0.1 / 5):\n"
            f"  learning_rate = 1.00e-03, loss_average = {loss(i)}\n"
            for i in EVERY
        ),
        {"last_step": 40, "total_steps": 400},
        {"loss": LOSS, "learning_rate": (40, (1, 0.001), (40, 0.001))},
    ),
    "scores beside a loss": (
        lines("Epoch: {i}, Loss: {l}, Train: 0.8123, Val: 0.7123, Test: 0.7023"),
        {"last_step": 40},
        {"loss": LOSS, "eval_score": (40, (1, 0.7123), (40, 0.7123))},
    ),
    "a word of another language": (
        lines("  Entrenamiento: loss={l} (value=0.2, policy=1.1) | Tiempo: 96.8s"),
        {},
        {"loss": LOSS},
    ),
    "an error of the test": (
        "".join(f"Training Loss: {loss(i)}\nModel test error: 0.0{i + 10}\n" for i in EVERY),
        {},
        {"loss": LOSS, "eval_error": (40, (1, 0.011), (40, 0.05))},
    ),
    "a step after the loss": (
        # https://github.com/NVIDIA/tacotron2, train.py
        lines("Train loss {i} {l} Grad Norm 1.500000 5.71s/it\nValidation loss {i}: {e}  "),
        {"last_step": 40},
        {"loss": LOSS, "eval_loss": EVAL, "grad_norm": (40, (1, 1.5), (40, 1.5))},
    ),
    "how far it is, first": (
        lines(
            " {i}/500: episode: 9, duration: 1.498s, episode steps: 291, steps per second: 194, "
            "episode reward: 29.5, loss: {l}"
        ),
        {"last_step": 40, "total_steps": 500},
        {"loss": LOSS, "reward": (40, (1, 29.5), (40, 29.5))},
    ),
    "how far it is, with spaces": (
        lines("{i}00 / 5000 eps 0.899 |  avgR -0.997 | Loss {l} | Grad 5.585e-03 "),
        {"last_step": 4000, "total_steps": 5000},
        {"loss": (40, (100, 2.98), (4000, 2.2))},
    ),
    "an episode": (
        lines("Episode {i}\tLast length:    23\tAverage length: {l}"),
        {"last_step": 40},
        {"average_length": LOSS},
    ),
    "a score by itself": (
        lines("step={i} | loss={l} | num_rays=256 |")
        + "evaluation: psnr_avg=35.5498\ntraining stops\n",
        {"last_step": 40, "ended": "finished"},
        {"loss": LOSS, "eval_psnr": (1, (40, 35.5498), (40, 35.5498))},
    ),
    "an epoch named after what is done": (
        # https://github.com/mozilla/DeepSpeech
        lines(
            "I Training epoch {i}...\nI Training of Epoch {i} - loss: {l}    \n"
            "I Validating epoch {i}...\nI Validation of Epoch {i} - loss: {e}    "
        ),
        {"last_step": 40},
        {"loss": LOSS, "eval_loss": EVAL},
    ),
    "glued words": (
        # https://github.com/deepinsight/insightface, arcface_torch
        lines(
            "Training: 2022-05-05 03:05:53,162-Speed 727.03 samples/sec   Loss {l}   "
            "LearningRate 0.1000   Epoch: 0   Global Step: {i}   Required: 453 hours"
        ),
        {"last_step": 40},
        {"loss": LOSS, "learning_rate": (40, (1, 0.1), (40, 0.1))},
    ),
    "updates of an epoch's end": (
        # https://github.com/flashlight/wav2letter
        lines("epoch:    5 | nupdates:  {i}00 | lr: 0.000015 | bch(ms): 390.84 | loss:  {l} | "
              "dev-clean-WER: 97.16 | hrs:  960.47"),
        {"last_step": 4000},
        {"loss": (40, (100, 2.98), (4000, 2.2))},
    ),
    "a mean beside the batch": (
        # https://github.com/k2-fsa/icefall, its MetricsTracker
        lines(
            "Epoch 0, batch {i}, loss[loss={l}, simple_loss=0.9, over 2490.00 frames.], "
            "tot_loss[loss=1.455, simple_loss=0.91, over 2490.00 frames.], batch size: 30, "
            "lr: 3.00e-03"
        ),
        {"last_step": 40},
        {"loss": LOSS, "learning_rate": (40, (1, 0.003), (40, 0.003))},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOGS)
def test_what_they_print(name: str) -> None:
    check(LOGS[name])


@pytest.mark.parametrize(
    "text",
    [
        "# Step 1\nopen the door\n# Step 2\nclose it\n",
        "    step = 0\n    for x in range(3):\n        iteration = 0\n",
        "        self.assertEqual(value(tk, {'test': 3}, 'x:y'),\n",
        "    self.assert_equal(iter1, iter2, test_id, limit=100)\n",
        "def copy(src, dst, symlinks=0, update=0, verbose=1, dry_run=0):\n",
        "# SHA1 fingerprint: ce:69:15:f1:30:22:c6:07\n",
        "Epoch 3 train: 60000, val: 10000\n",
    ],
)
def test_what_is_no_training(text: str) -> None:
    reading = read(text)
    assert reading.last_step is None or not reading.series
    assert not reading.series.keys() & {"loss", "eval_loss", "accuracy", "reward", "f1"}
