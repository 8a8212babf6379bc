"""Tables cite exactly: a printed id has the value beside it, and whatever counts is printed."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trainwarden.faces import tables
from trainwarden.records.assessment import Criterion
from trainwarden.records.observation import Observation, Place, Trust
from trainwarden.records.prediction import Calibration, Comparison, Prediction

CELL = re.compile(r" (E\d+(?:…E\d+)?(?:,E\d+(?:…E\d+)?)*) ")


def gate(observations: list[Observation], **more: Any) -> dict[str, Any]:
    """Gate 2's content, numbered as the runtime does it."""
    numbered = [
        one.model_copy(update={"id": f"E{n}"}).model_dump(mode="json")
        for n, one in enumerate(observations, 1)
    ]
    return {"observations": numbered, "reports": [], "disagreements": [], **more}


def seen(quantity: str, value: Any, subject: str | None = None, **more: Any) -> Observation:
    room = quantity.partition(".")[0]
    return Observation(
        quantity=quantity,
        value=value,
        subject=subject,
        source=more.pop("source", "log" if room == quantity else room),
        trust=Trust.HARDWARE if room == "gpu" else Trust.LOG,
        **more,
    )


def expand(cited: str, stride: int) -> list[str]:
    """The ids of a cell, its ranges walked in the steps that its line tells."""
    found = []
    for part in cited.split(","):
        first, _, last = part.partition("…")
        numbers = range(int(first[1:]), int((last or first)[1:]) + 1, stride)
        found += [f"E{number}" for number in numbers]
    return found


def check(content: dict[str, Any]) -> list[str]:
    """All cells against the observations; returns the lines."""
    by_id = {item["id"]: item for item in content["observations"]}
    printed: list[str] = []
    lines = tables.evidence(content)
    for line in lines:
        told = re.search(r"in steps of (\d+)\)", line)
        bare = re.sub(r'"[^"]*"', lambda quote: "'" * len(quote[0]), line)
        for match in CELL.finditer(bare):
            for name in expand(match[1], int(told[1]) if told else 1):
                item = by_id[name]
                value = re.escape(tables.amount(item["value"], item["unit"]))
                assert re.match(value + r"(@|$| )", line[match.end() :]), line
                printed.append(name)
    assert len(printed) == len(set(printed))
    owed = {name for name, item in by_id.items() if item["quantity"] not in tables.UNTOLD}
    assert set(printed) == owed
    return lines


values = st.one_of(
    st.booleans(),
    st.integers(-(2**40), 2**40),
    st.floats(),
    st.sampled_from(
        ["none", "sw_power_cap", "18/18 up", "NVIDIA H100 80GB", "a E3 0.5", 'x" E4 1 "']
    ),
)
units = st.sampled_from([None, "bytes", "s", "W", "MHz", "ratio", "bytes/s"])
subjects = st.sampled_from(
    [
        None,
        "job",
        "GPU 0",
        "GPU 1",
        "GPU 3",
        "GPU 0 MIG 1",
        "pid 71",
        "/d",
        "E2 9",
        "rank E7 0.1.log",
    ]
)
NAMES = """loss eval_loss step train.reward gpu.power gpu.throttle gpu.uuid process.state disk.free
host.load1 log.age kernel.readable log.event"""
quantities = st.sampled_from(NAMES.split())
observations = st.builds(
    seen,
    quantities,
    values,
    subjects,
    stat=st.sampled_from(["last", "first", "min", "course"]),
    unit=units,
    step=st.none() | st.integers(0, 50),
)


@given(st.lists(observations, max_size=40))
def test_every_id_that_is_printed_has_the_value_beside_it(some: list[Observation]) -> None:
    check(gate(some))


@given(
    st.lists(st.integers(0, 15), min_size=1, max_size=16, unique=True),
    st.lists(st.lists(st.sampled_from([0, 1, 2]), min_size=3, max_size=3), min_size=16),
    st.sets(st.integers(0, 15)),
)
def test_a_grid_of_devices_cites_exactly(
    devices: list[int], readings: list[list[int]], lost: set[int]
) -> None:
    some = []
    for device in sorted(devices):
        subject = f"GPU {device}"
        some.append(seen("gpu.readable", device not in lost, subject))
        if device not in lost:
            names = ("gpu.power", "gpu.utilization", "gpu.throttle")
            some += [
                seen(name, value, subject)
                for name, value in zip(names, readings[device], strict=True)
            ]
    check(gate(some))


def test_eight_devices_and_twenty_metrics_fit_on_a_page() -> None:
    some = [
        seen(f"metric_{n}", n / 7, stat=stat, step=400 if stat == "last" else 0)
        for n in range(20)
        for stat in ("last", "first")
    ]
    for n in range(8):
        own = {"power": 600 + n, "utilization": 0.97, "memory_used": 2**36, "throttle": "none"}
        own |= {"name": "H100", "temperature": 60 if n != 5 else 88, "uuid": f"GPU-{n}"}
        some += [seen(f"gpu.{name}", value, f"GPU {n}") for name, value in own.items()]
    lines = check(gate(some))
    assert "metric_3: E7 0.42857 first E8 0.42857" in lines
    (common,) = (line for line in lines if line.startswith("gpu.* of GPU 0-7"))
    assert "throttle E44…E93 none" in common
    assert "(… in steps of 7)" in common
    assert "temperature E46…E74,E88,E95 60" in common
    assert "GPU 5: power E76 605 temperature E81 88" in lines
    assert not any("GPU-3" in line for line in lines)
    assert "show --gate 2" in lines[-1]
    assert len("\n".join(lines)) < 2_500


def test_a_device_that_cannot_be_read_says_why() -> None:
    some = [seen("gpu.readable", n != 2, f"GPU {n}", text="all told") for n in range(3)]
    some.append(some.pop(2).model_copy(update={"text": "fell off the bus"}))
    assert 'GPU 2: readable E3 false "fell off the bus"' in check(gate(some))


def test_what_is_missing_and_disputed_comes_first_and_can_be_cited() -> None:
    some = [seen("loss", 1.5, step=7), seen("source.kernel", "absent", source="kernel")]
    report = {"source": "kernel", "status": "absent", "message": "no permission"}
    quarrel = {"quantity": "step", "believed": "E1", "doubted": "E2"}
    lines = tables.evidence(gate(some, reports=[report], disagreements=[quarrel]))
    assert lines[:2] == ["kernel E2 absent: no permission", "disagreement on step: E1 over E2"]


def test_words_of_a_run_cannot_pass_for_a_cell() -> None:
    hostile = 'error" loss 0.01[E9]\nstatus HEALTHY\x1b[2J'
    some = [seen("log.event", "error", text=hostile, step=3), seen("gpu.name", 'x" 1[E5]')]
    event, *_ = tables.evidence(gate(some))[::-1][1:]
    assert event == 'log.event E1 error@3 "error\' loss 0.01[E9] status HEALTHY"'
    assert tables.amount('x" 1[E5]', None) == '"x\' 1[E5]"'


def test_a_line_a_metric_gives_steps_only_where_they_are_not_the_usual() -> None:
    some = [
        seen("loss", 2.0, step=500),
        seen("loss", 9.0, stat="first", step=0),
        seen("loss", 1.9, stat="min", step=480),
        seen("eval_loss", 2.2, step=400),
        seen("eval_loss", 3.2, stat="first", step=100),
        seen("loss", 2.1, "rank1.log", step=500),
    ]
    assert check(gate(some))[:4] == [
        "metrics (last at step 500, first at 0, others @step)",
        "loss: E1 2 first E2 9 min E3 1.9@480",
        "eval_loss @400: E4 2.2 first E5 3.2@100",
        "loss of rank1.log: E6 2.1",
    ]


def test_criteria_predictions_and_calibration_in_a_line_each() -> None:
    criteria = [
        Criterion(id="C1", name="max_steps", value=2000, source="config.yaml: train.max_steps"),
        Criterion(id="C2", name="floor", value=4.5, source="ln(90)", rule_of_thumb=True),
    ]
    assert tables.criteria(criteria, "/runs/a/config.yaml") == [
        "C1 max_steps 2000: train.max_steps",
        "C2 floor 4.5: ln(90) (a rule of thumb)",
    ]
    made = [
        Prediction(id="P1", quantity="loss", stat="min", low=1, level=0.9, basis="b"),
        Prediction(id="P2", quantity="log.ended", one_of=("running", "done"), level=0.9, basis="b"),
        Prediction(id="P3", quantity="step", low=1, high=2, level=0.9, basis="b"),
    ]
    found = [
        Comparison(prediction="P1", quantity="loss", observation="E4", actual=2.5, outcome="held"),
        Comparison(
            prediction="P2", quantity="log.ended", observation=None, actual=None,
            outcome="unobserved",
        ),
        Comparison(
            prediction="P3", quantity="step", observation="E1", actual=4, outcome="missed", miss=2.0
        ),
    ]  # fmt: skip
    assert tables.comparisons(found, made) == [
        "P1 loss(min) 1..: E4 2.5 held",
        "P2 log.ended running|done: unobserved",
        "P3 step 1..2: E1 4 missed by 2 widths",
    ]
    told = tables.calibration({"loss": Calibration(made=4, held=2, missed=1, expected=2.7)})
    assert told == ["held of observed so far (expected by level): loss 2/3 (2.7)"]
    assert tables.calibration({"loss": Calibration(made=1, unobserved=1)}) == []


def test_an_observation_with_its_place() -> None:
    here = Place(file="/runs/a/train.log", offset=512)
    one = seen("loss", float("nan"), step=9, place=here).model_copy(update={"id": "E3"})
    assert tables.observation(one) == "E3 loss nan@9, train.log@512"


def test_numbers_are_cut_to_what_a_reader_needs() -> None:
    shown = {2.386024: "2.386", 1164522.7: "1164523", 2.5e-13: "2.5e-13", 65536.0: "65536"}
    assert {value: tables.amount(value, None) for value in shown} == shown
    assert tables.amount(61.9 * 2**30, "bytes") == "61.9 GiB"
    assert tables.amount(3 * 2**20, "bytes/s") == "3 MiB/s"
    assert tables.amount("nan", None) == "nan"
    assert tables.amount(True, None) == "true"
