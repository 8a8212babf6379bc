"""PyTorch Lightning: bars, its csv logger, and the tables of validation and test."""

from __future__ import annotations

import pytest

from support.logs import Log, bar, check, loss

SANITY = (
    "\rSanity Checking: |          | 0/? [00:00<?, ?it/s]\rSanity Checking DataLoader 0:   0%|"
    "          | 0/2 [00:00<?, ?it/s]\rSanity Checking DataLoader 0: 100%|███| 2/2 [00:00<00:00, "
    "10.1it/s]\r                                     \r"
)
VALIDATION = (
    "\n\rValidation: |          | 0/? [00:00<?, ?it/s]"
    "\rValidation DataLoader 0: 100%|██████████| 10/10 [00:00<00:00, 40.1it/s]"
)


def epoch(e: int) -> str:
    def post(n: int) -> str:
        text = f", v_num=3, train_loss_step={loss(e * 50 + n)}"
        return text + (f", val_loss=1.{e - 1}, train_loss_epoch={loss(e * 50)}" if e else "")

    redraws = "".join(bar(n, 50, post(n), f"Epoch {e}: ") for n in (0, 25, 50))
    last = f", v_num=3, train_loss_step={loss(e * 50 + 50)}, val_loss=1.{e}"
    return (
        "\rTraining: |          | 0/? [00:00<?, ?it/s]"
        + redraws
        + VALIDATION
        + bar(50, 50, f"{last}, train_loss_epoch={loss(e * 50 + 25)}", f"Epoch {e}: ")
    )


LOGS: dict[str, Log] = {
    "bars": (
        SANITY
        + "".join(epoch(e) for e in (0, 1, 2))
        + "\n`Trainer.fit` stopped: `max_epochs=3` reached.\n",
        {"last_step": 150, "total_steps": 150, "ended": "finished", "runs": 1},
        {
            "loss": (7, (0, 3.0), (150, 0.0)),
            "eval_loss": (3, (50, 1.0), (150, 1.2)),
        },
    ),
    "a rich bar": (
        "`Trainer.fit` stopped: `max_epochs=3` reached.\n"
        "Epoch 2/2  ━━━━━━━━━━━━━━━━━━━━ 50/50 0:00:01 • 0:00:00 105.93it/s v_num: 0.000 "
        "train_loss_step: 0.612 val_loss: 0.683 val_acc: 0.81\n"
        "Validation ━━━━━━━━━━━━━━━━━━━━ 10/10 0:00:00 • 0:00:00 674.97it/s \n",
        {"last_step": 150, "total_steps": 150, "ended": "finished"},
        {
            "loss": (1, (150, 0.612), (150, 0.612)),
            "eval_loss": (1, (150, 0.683), (150, 0.683)),
            "eval_accuracy": (1, (150, 0.81), (150, 0.81)),
            "steps_per_second": (1, (150, 105.93), (150, 105.93)),
        },
    ),
    "a rich bar that is too wide": (
        "Epoch 1/4  ━━━━━━━━╸━━━━━━━ 25/50 0:00:01 • 0:00:01 105.93it/s train_loss_step: \n"
        + "".join(
            f"{' ' * 63}{part:<17}\n" for part in ("0.612 val_loss:", "0.683 val_acc:", "0.81")
        )
        + "KeyboardInterrupt\n",
        {"last_step": 75, "total_steps": 250, "ended": "interrupted"},
        {
            "loss": (1, (75, 0.612), (75, 0.612)),
            "eval_loss": (1, (75, 0.683), (75, 0.683)),
            "eval_accuracy": (1, (75, 0.81), (75, 0.81)),
        },
    ),
    "bars drawn twice a step": (
        # First the count goes on, then the new values are set.
        "".join(
            bar(n, 50, f", train_loss_step={loss(max(n - k, 0))}, val_loss=1.5", "Epoch 0: ")
            for n in range(5, 30, 5)
            for k in (5, 0)
        )
        + "\nDetected KeyboardInterrupt, attempting graceful shutdown ...\n",
        {"last_step": 25, "ended": "interrupted"},
        {"loss": (6, (5, loss(0)), (25, loss(25)))},
    ),
    "bars under way": (
        SANITY + epoch(0) + bar(25, 50, f", train_loss_step={loss(75)}", "Epoch 1: "),
        {"last_step": 75, "ended": "running"},
        {"loss": (4, (0, 3.0), (75, 1.5)), "eval_loss": (1, (50, 1.0), (50, 1.0))},
    ),
    "bars of version 1": (
        # The bar counts the batches of the validation too.
        "".join(
            bar(n, 60, f", loss={loss(e * 60 + n)}, v_num=3", f"Epoch {e}: ")
            for e in (0, 1)
            for n in (0, 30, 50)
        )
        + "\rValidating: 0it [00:00, ?it/s]\rValidating:  50%|█████   | 5/10 [00:00<00:00, 50it/s]"
        + bar(60, 60, f", loss={loss(110)}, v_num=3, val_loss=1.2", "Epoch 1: ")
        + "\n",
        {"last_step": 120, "ended": "running"},
        {"loss": (7, (0, 3.0), (120, 0.8)), "eval_loss": (1, (120, 1.2), (120, 1.2))},
    ),
    "csv": (
        # Steps count from 0; a row for what is logged at once, the rest blank.
        "epoch,lr-Adam,step,train_loss_epoch,train_loss_step,val_acc,val_loss\n"
        + "".join(f",0.001,{i},,,,\n{i // 50},,{i},,{loss(i)},,\n" for i in range(9, 150, 10))
        + "2,,149,,,0.8,1.5\n2,,149,2.2,,,\n",
        {"last_step": 149, "ended": "unknown"},
        {
            "loss": (15, (9, 2.82), (149, 0.02)),
            "learning_rate": (15, (9, 0.001), (149, 0.001)),
            "eval_loss": (1, (149, 1.5), (149, 1.5)),
            "eval_accuracy": (1, (149, 0.8), (149, 0.8)),
        },
    ),
    "csv with a test at the end": (
        "epoch,step,test_acc,test_loss,train_loss,val_loss\r\n"
        + "".join(f"{i // 50},{i},,,{loss(i)},\r\n" for i in range(9, 100, 10))
        + "1,99,,,,1.5\r\n2,100,0.9,0.3,,\r\n",
        {"last_step": 100, "ended": "finished"},
        {
            "loss": (10, (9, 2.82), (99, 1.02)),
            "eval_loss": (1, (99, 1.5), (99, 1.5)),
            "test_loss": (1, (100, 0.3), (100, 0.3)),
        },
    ),
    "rich's table of a test": (
        bar(50, 50, ", loss=2.1", "Epoch 0: ")
        + "\n┏━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━┓\n┃   Test metric    ┃   DataLoader 0   ┃\n"
        "┡━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━┩\n│    test_acc      │    0.9142000     │\n"
        "│    test_loss     │    0.3012345     │\n└──────────────────┴──────────────────┘\n",
        {"last_step": 50},
        {"eval_accuracy": (1, (50, 0.9142), (50, 0.9142))},
    ),
    "a plain table of validation": (
        "─────────────────────────────────────────────\n"
        "     Validate metric           DataLoader 0\n"
        "─────────────────────────────────────────────\n"
        "         val_acc             0.9142000079154968\n"
        "        val_loss             0.3012345\n"
        "─────────────────────────────────────────────\n",
        {},
        {
            "eval_accuracy": (1, (0, 0.9142), (0, 0.9142)),
            "eval_loss": (1, (0, 0.3012345), (0, 0.3012345)),
        },
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_what_is_printed(name: str) -> None:
    check(LOGS[name])
