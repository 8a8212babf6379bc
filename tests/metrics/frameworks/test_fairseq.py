"""fairseq, of its versions and log formats, and trainers made from it."""

from __future__ import annotations

import json

import pytest

from support.logs import Log, bar, check, loss

P = "2021-03-01 10:00:00 | INFO | "
LAST = f"{P}fairseq_cli.train | done training in 400.5 seconds\n"


def step(epoch: int, i: int) -> str:
    """An interval's line: the place in the epoch, and the updates of the whole run."""
    n = 150 * (epoch - 1) + i
    return (
        f"{P}train_inner | epoch {epoch:03d}:    {i} / 150 loss={loss(n / 10)}, nll_loss=9.1, "
        f"ppl=549.7, wps=40000.5, ups=3.1, wpb=12000, bsz=400, num_updates={n}, lr=1.5e-0{epoch}, "
        f"gnorm=2.{epoch}, loss_scale=128, train_wall=13, gb_free=9.8, wall=27\n"
    )


def epoch_end(epoch: int) -> str:
    return (
        f'{P}fairseq_cli.train | begin validation on "valid" subset\n'
        f"{P}valid | epoch {epoch:03d} | valid on 'valid' subset | loss 8.{epoch} | nll_loss 8.5 | "
        f"ppl 362.1 | wps 90000 | wpb 3000 | bsz 100 | num_updates {epoch * 150}\n"
        f"{P}fairseq.checkpoint_utils | Saved checkpoint checkpoints/checkpoint{epoch}.pt (epoch "
        f"{epoch} @ {epoch * 150} updates, score 8.9) (writing took 2.5 seconds)\n"
        f"{P}fairseq_cli.train | end of epoch {epoch} (average epoch stats below)\n"
        f"{P}train | epoch {epoch:03d} | loss 9.1 | nll_loss 8.8 | ppl 450 | wps 39000 | ups 3 | "
        f"num_updates {epoch * 150} | lr 0.0001875 | gnorm 1.9 | train_wall 190 | wall 200\n"
        f"{P}fairseq.trainer | begin training epoch {epoch + 1}\n"
    )


def old_step(epoch: int, i: int) -> str:
    n = 150 * (epoch - 1) + i
    return (
        f"| epoch {epoch:03d}:    {i} / 150 loss={loss(n / 10)}, nll_loss=12.0, ppl=4096.1, "
        f"wps=37000, ups=1, wpb=3500, bsz=120, num_updates={n}, lr=1.2e-05, gnorm=2.8, "
        "clip=100%, oom=0.000, wall=40, train_wall=38\n"
    )


def old_epoch_end(epoch: int) -> str:
    return (
        f"| epoch {epoch:03d} | loss 8.4 | nll_loss 7.9 | ppl 250 | wps 37000 | "
        f"num_updates {epoch * 150} | lr 0.0001 | gnorm 1.8 | clip 0% | oom 0 | wall 150\n"
        f"| epoch {epoch:03d} | valid on 'valid' subset  100 / 120 loss=6.9\n"
        f"| epoch {epoch:03d} | valid on 'valid' subset | valid_loss 6.{epoch} "
        f"| valid_nll_loss 4.8 | valid_ppl 27.8 | num_updates {epoch * 150}\n"
    )


def as_json(epoch: int, i: int) -> str:
    n = 150 * (epoch - 1) + i
    stats = {"epoch": epoch, "update": round(epoch - 1 + i / 150, 3), "loss": str(loss(n / 10))}
    stats |= {"ppl": "549.7", "num_updates": str(n), "lr": "1.25e-05", "gnorm": "2.5"}
    return f"{P}train_inner | {json.dumps(stats)}\n"


def json_epoch_end(epoch: int) -> str:
    valid = {"epoch": epoch, "valid_loss": f"8.{epoch}", "valid_ppl": "362"}
    valid["valid_num_updates"] = str(epoch * 150)
    train = {"epoch": epoch, "train_loss": "9.1", "train_num_updates": str(epoch * 150)}
    return f"{P}valid | {json.dumps(valid)}\n{P}train | {json.dumps(train)}\n"


SIX = {"loss": (6, (50, 2.9), (300, 2.4)), "eval_loss": (2, (150, 8.1), (300, 8.2))}
LOGS: dict[str, Log] = {
    "text": (
        f"{P}fairseq_cli.train | Namespace(adam_betas='(0.9, 0.98)', arch='transformer', "
        "clip_norm=25.0, data='data-bin/x y z', lr=[0.0005], lr_scheduler='inverse_sqrt', "
        "max_epoch=0, max_update=400, patience=-1, source_lang='de', target_lang='en')\n"
        + "".join("".join(step(e, i) for i in (50, 100, 150)) + epoch_end(e) for e in (1, 2))
        + LAST,
        {"last_step": 300, "total_steps": 400, "ended": "finished", "runs": 1},
        {
            **SIX,
            "perplexity": (6, (50, 549.7), (300, 549.7)),
            "loss_scale": (6, (50, 128), (300, 128)),
        },
    ),
    "json": (
        "".join("".join(as_json(e, i) for i in (50, 100, 150)) + json_epoch_end(e) for e in (1, 2))
        + LAST,
        {"last_step": 300, "ended": "finished", "runs": 1},
        {**SIX, "learning_rate": (6, (50, 1.25e-5), (300, 1.25e-5))},
    ),
    "before there were loggers": (
        "".join("".join(old_step(e, i) for i in (50, 100)) + old_epoch_end(e) for e in (1, 2))
        + "| done training in 521.8 seconds\n",
        {"last_step": 300, "ended": "finished", "runs": 1},
        {
            "loss": (4, (50, 2.9), (250, 2.5)),
            "eval_loss": (2, (150, 6.1), (300, 6.2)),
            "grad_norm": (6, (50, 2.8), (300, 1.8)),
        },
    ),
    "bars": (
        "".join(
            bar(i, 150, f", loss={loss(i / 10)}, num_updates={i}, lr=1.25e-05", "epoch 001: ")
            for i in (50, 100, 150)
        )
        + "\n"
        + epoch_end(1),
        {"last_step": 150, "ended": "running"},
        {"loss": (3, (50, 2.9), (150, 2.7)), "eval_loss": (1, (150, 8.1), (150, 8.1))},
    ),
    "an exploding loss": (
        step(1, 50)
        + step(1, 100)
        + 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    main()\n'
        "FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding. "
        "Try lowering the learning rate, using gradient clipping or increasing the batch size.\n",
        {"last_step": 100, "ended": "crashed"},
        {"loss": (2, (50, 2.9), (100, 2.8))},
    ),
    "NVIDIA's transformer": (
        "".join(
            f"Transformer | epoch {e} | step {e * 100 + i} |avg loss {loss(e * 100 + i)} |"
            "avg tokens 3000.1 |tokens/s 29000.1 |walltime 4.1 |\n"
            for e in (0, 1)
            for i in (50, 100)
        )
        + "Epoch time: 501.6\nValidation loss on subset valid: 4.7\n"
        "| Translated 300 sentences (745 tokens) in 1.9s (160.8 sentences/s, 319.9 tokens/s)\n"
        "| Eval completed in: 7.79s | UNCASED BLEU 9.82\n| done training in 521.8 seconds\n"
        "Transformer | epoch 0 | step () |avg loss 4.779 |walltime 534.528 |\n",
        {"last_step": 200, "ended": "finished"},
        {
            "loss": (4, (50, 2.0), (200, -1.0)),
            "eval_loss": (1, (200, 4.7), (200, 4.7)),
            "eval_bleu": (1, (200, 9.82), (200, 9.82)),
        },
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_what_is_printed(name: str) -> None:
    check(LOGS[name])
