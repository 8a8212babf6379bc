from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.answers import begin, make_job, walk_to
from trainwarden.analysts.rereading import reread
from trainwarden.analysts.reviewer import BuiltinReviewer
from trainwarden.evidence.config import load_config, training_facts
from trainwarden.procedure.auditing import could_agree
from trainwarden.procedure.criteria import derive
from trainwarden.records.assessment import Criterion
from trainwarden.records.job import Job
from trainwarden.records.observation import Observation, Place, Trust


def checked(root: Path, text: str, change: dict[str, object] | None = None) -> tuple[bool, str]:
    """The check of the criteria that a config gives, one of them changed."""
    session = walk_to(begin(root), "review")
    config = root / "other.yaml"
    config.write_text(text)
    job = Job(id=session.job.id, config=str(config), logs=session.job.logs)
    criteria = list(derive(job, training_facts(load_config(config), {}), None))
    assert criteria
    for name, value in (change or {}).items():
        criteria = [
            c.model_copy(update={"value": value}) if c.name == name else c for c in criteria
        ]
    header = session.header.model_copy(update={"job": job, "criteria": tuple(criteria)})
    record = session.record.model_copy(update={"header": header})
    told = BuiltinReviewer().review(record, root)
    (check,) = [one for one in told.checks if one.name == "criteria"]
    return check.passed, check.remark


HONEST = """
max_steps: 2_000
epochs: 3
steps_per_epoch: 500
warmup_epochs: 0.5
learning_rate: 3.0e-4
min_lr_ratio: 0.1
per_device_train_batch_size: 8
gradient_accumulation_steps: 4
nproc_per_node: 2
fp16: true
eval_steps: 0.1
save_steps: 250
vocab_size: 50257
"""


def test_what_is_worked_out_of_a_config_stands(tmp_path: Path) -> None:
    assert checked(tmp_path, HONEST)[0] is True


def test_a_product_of_two_keys_is_not_held_against_the_last_of_them(tmp_path: Path) -> None:
    nested = "training:\n  batch_size: 512\ndistributed:\n  world_size: 8\n"
    assert checked(tmp_path, nested)[0] is True


def test_a_criterion_that_the_config_contradicts_is_found(tmp_path: Path) -> None:
    passed, remark = checked(tmp_path, HONEST, {"learning_rate": 0.5})
    assert passed is False
    assert "learning_rate" in remark


@pytest.mark.parametrize("source", ["model config: vocab_size", "the user", "session 2026-01-01"])
def test_what_another_source_says_is_not_looked_for_in_the_config(
    tmp_path: Path, source: str
) -> None:
    session = walk_to(begin(tmp_path, make_job(tmp_path)), "review")
    odd = Criterion(id="C9", name="vocab_size", value=77777, source=source)
    header = session.header.model_copy(update={"criteria": (odd,)})
    told = BuiltinReviewer().review(session.record.model_copy(update={"header": header}), tmp_path)
    assert all(check.passed for check in told.checks if check.name == "criteria")


@pytest.mark.parametrize(
    ("line", "value", "found"),
    [
        ("16707,2124.37,-71.2,300,306,5013504,0.46", 5013504, True),
        ("16707,2124.37,-71.2,300,306,5013504,0.46", 306, True),
        ("tokens: 1,234,567 | loss 2.25", 1234567, True),
        ("loss 2.25 at 33 ms", 0.033, True),
        ("loss 2.25 at 33 ms", 2.5, False),
        ("   > loss_disc: 2.9 (2.9)\n   > loss_gen: 22.05973", 22.05973, True),
        ("   > loss_disc: 2.9 (2.9)\n   > loss_gen: 22", 22.0, False),
    ],
)
def test_numbers_are_found_as_logs_print_them(
    tmp_path: Path, line: str, value: float, found: bool
) -> None:
    log = tmp_path / "x.log"
    log.write_text("first line\n" + line + "\nlast line\n")
    place = Place(file=str(log), offset=11)
    item = Observation(
        id="E1", quantity="loss", value=value, source="log", trust=Trust.LOG, place=place
    )
    told = reread(item)
    assert told is not None
    assert told.agrees is found
    assert not found or could_agree(item, told.found)
    step = reread(item.model_copy(update={"quantity": "step", "value": 98765}))
    assert step is None, "a step that no line prints was counted"


def test_what_the_reviewer_reads_again_can_agree() -> None:
    alive = Observation(
        id="E1",
        quantity="process.state",
        value="sleeping",
        source="process",
        trust=Trust.PROCESS,
        place=Place(pid=os.getpid()),
    )
    told = reread(alive)
    assert told is not None
    assert told.agrees
    assert could_agree(alive, told.found)
    stopped = reread(alive.model_copy(update={"value": "stopped"}))
    assert stopped is not None
    assert not stopped.agrees
