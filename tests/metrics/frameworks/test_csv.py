"""CSV of any dialect, and other tables under a header."""

from __future__ import annotations

import pytest

from support.logs import EVERY, Log, check, lines, loss, read

ROWS = {"loss": (40, (1, 2.98), (40, 2.2)), "learning_rate": (40, (1, 0.1), (40, 0.1))}
FIELDS = {"last_step": 40, "runs": 1}


def comma(value: float) -> str:
    return str(value).replace(".", ",")


LOGS: dict[str, Log] = {
    "commas": ("step,loss,lr\n" + lines("{i},{l},0.1"), {**FIELDS, "format": "csv"}, ROWS),
    "semicolons": ("step;loss;lr\n" + lines("{i};{l};0.1"), FIELDS, ROWS),
    "tabs": ("step\tloss\tlr\n" + lines("{i}\t{l}\t0.1"), {**FIELDS, "format": "table"}, ROWS),
    "pipes": ("step|loss|lr\n" + lines("{i}|{l}|0.1"), FIELDS, ROWS),
    "pipes and spaces": ("step | loss | lr\n" + lines("{i} | {l} | 0.1"), FIELDS, ROWS),
    "single spaces": ("step loss lr\n" + lines("{i} {l} 0.1"), FIELDS, ROWS),
    "aligned columns": ("step      loss      lr\n" + lines("{i:<10}{l:<10}0.1"), FIELDS, ROWS),
    "a header as a comment": ("# step loss lr\n" + lines("{i} {l} 0.1"), FIELDS, ROWS),
    "quotes": ('"step","loss","lr"\n' + lines('"{i}","{l}","0.1"'), FIELDS, ROWS),
    "quoted commas": (
        '"step","loss","lr","note"\n' + lines('{i},{l},0.1,"a, b"'),
        FIELDS,
        ROWS,
    ),
    "a byte order mark": ("\ufeffstep,loss,lr\n" + lines("{i},{l},0.1"), FIELDS, ROWS),
    "carriage returns": ("step,loss,lr\r\n" + lines("{i},{l},0.1\r"), FIELDS, ROWS),
    "comments before": ("# run x\n# seed: 1\nstep,loss,lr\n" + lines("{i},{l},0.1"), FIELDS, ROWS),
    "a header after other lines": (
        "hello world\nusing gpu 0\nstep,loss,lr\n" + lines("{i},{l},0.1"),
        FIELDS,
        ROWS,
    ),
    "an index without a name": (",step,loss,lr\n" + lines("{i},{i},{l},0.1"), FIELDS, ROWS),
    "decimal commas": (
        "step;loss;lr\n" + "".join(f"{i};{comma(loss(i))};0,1\n" for i in EVERY),
        FIELDS,
        ROWS,
    ),
    "a table in Markdown": (
        "| Training Loss | Epoch | Step | Validation Loss |\n|:---:|:---:|:---:|:---:|\n"
        + lines("| {l} | 1.0 | {i} | {e} |"),
        {"last_step": 40, "format": "table"},
        {"loss": (40, (1, 2.98), (40, 2.2)), "eval_loss": (40, (1, 3.08), (40, 2.3))},
    ),
    "phases in a column": (
        "time,phase,epoch,step,loss\n"
        + lines("2022-01-01T10:00:00,train,0,{i},{l}")
        + "2022-01-01T10:00:00,val,0,40,1.5\n",
        FIELDS,
        {"loss": (40, (1, 2.98), (40, 2.2)), "eval_loss": (1, (40, 1.5), (40, 1.5))},
    ),
    "blank cells": (
        "epoch,step,loss,val_loss\n" + lines("0,{i},{l},") + "0,40,,1.5\n",
        FIELDS,
        {"loss": (40, (1, 2.98), (40, 2.2)), "eval_loss": (1, (40, 1.5), (40, 1.5))},
    ),
    "names in words": (
        "Epoch,Train Loss,Val Loss,Val Acc\n" + lines("{i},{l},{e},0.5"),
        FIELDS,
        {
            "loss": (40, (1, 2.98), (40, 2.2)),
            "eval_loss": (40, (1, 3.08), (40, 2.3)),
            "eval_accuracy": (40, (1, 0.5), (40, 0.5)),
        },
    ),
    "a second run appended": (
        "step,loss,lr\n"
        + lines("{i},{l},0.1", range(1, 11))
        + "step,loss,lr\n"
        + lines("{i},{l},0.1", range(1, 21)),
        {"last_step": 20, "runs": 2},
        {"loss": (30, (1, 2.98), (20, 2.6))},
    ),
    "fastai": (
        "epoch     train_loss  valid_loss  accuracy  time    \n"
        + lines("{i}         {l}      {e}      0.612345  00:12"),
        {"last_step": 40},
        {"loss": (40, (1, 2.98), (40, 2.2)), "eval_loss": (40, (1, 3.08), (40, 2.3))},
    ),
}


@pytest.mark.parametrize("cell", ["1,234", "12,345"])
def test_a_comma_that_may_part_thousands_is_no_number_before_others_tell(cell: str) -> None:
    assert "loss" not in read(f"step;loss\n1;{cell}\n2;{cell}\n").series
    told = read(f"step;loss\n1;{cell}\n2;0,5\n3;{cell}\n").series["loss"]
    assert [point.value for point in told.points()] == [0.5, float(cell.replace(",", "."))]


@pytest.mark.parametrize("name", LOGS)
def test_what_is_printed(name: str) -> None:
    check(LOGS[name])
