"""The watch whose tokens are counted: a run with 8 GPUs and 20 metrics, and what a model types."""

from __future__ import annotations

import json
import math
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support import nvml  # noqa: E402
from support.model import Asked, Script, bash, call, say  # noqa: E402
from trainwarden.procedure.gates import TASKS  # noqa: E402

GPUS = 8
METRICS = 20
COMMANDS = (
    "predict", "collect", "compare", "assess", "resources", "review", "troubleshoot", "strategize",
    "finish",
)  # fmt: skip

CONFIG = """\
model: {vocab_size: 50304, sequence_length: 2048}
training:
  max_steps: 20000
  learning_rate: 3.0e-4
  min_learning_rate: 3.0e-5
  warmup_steps: 500
  lr_scheduler_type: cosine
  log_every: 10
  eval_every: 500
  save_every: 1000
  precision: bf16
distributed: {world_size: 8}
output_dir: out
"""
RANKS = """
import os, pathlib, time
log, ranks = open("train.log", "a"), []
for rank in range(8):
    ranks.append(os.fork())
    if not ranks[-1]:
        time.sleep(600)
        os._exit(0)
pathlib.Path("ranks").write_text(" ".join(map(str, ranks)))
pathlib.Path("ready").touch()
time.sleep(600)
"""


# The run -----------------------------------------------------------------------------------------


def write_run(folder: Path) -> None:
    """A language model at step 5990 of 20000 that learns: config, log, a checkpoint."""
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(CONFIG)
    checkpoint = folder / "out" / "checkpoint-5000"
    checkpoint.mkdir(parents=True)
    header = json.dumps({"w": {"dtype": "F32", "shape": [1000], "data_offsets": [0, 4000]}})
    weights = random.Random(2).randbytes(4000)
    data = len(header).to_bytes(8, "little") + header.encode() + weights
    (checkpoint / "model.safetensors").write_bytes(data)
    noise = random.Random(1)
    with (folder / "train.log").open("w") as log:
        for step in range(0, 6000, 10):
            values = metrics(step, noise)
            moment = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time.time() - 6000 + step))
            log.write(f"{moment} step={step} " + " ".join(f"{k}={v:.6g}" for k, v in values) + "\n")
            if step and step % 500 == 0:
                log.write(f"{moment} step={step} eval_loss={values[0][1] + 0.1:.4f}\n")


def metrics(step: int, noise: random.Random) -> list[tuple[str, float]]:
    """19 metrics of a step line; eval_loss is the twentieth."""
    loss = 2.4 + 8.4 * math.exp(-step / 900) + noise.gauss(0, 0.03)
    decay = 0.5 * (1 + math.cos(math.pi * max(0, step - 500) / 19_500))
    rate = min(1.0, step / 500) * (3e-5 + 2.7e-4 * decay)
    return [
        ("loss", loss),
        ("grad_norm", 0.8 + noise.random() / 5),
        ("learning_rate", rate),
        ("tokens_per_second", noise.gauss(1_165_084, 4_000)),
        ("step_time", noise.gauss(0.9, 0.01)),
        ("samples_per_second", noise.gauss(569, 3)),
        ("mfu", noise.gauss(0.41, 0.004)),
        ("accuracy", min(0.6, 0.02 + step / 12_000) + noise.gauss(0, 0.004)),
        ("perplexity", math.exp(loss)),
        ("gpu_memory", 65_712_345_088),
        ("loss_scale", 65_536),
        ("entropy", loss - 0.2),
        ("z_loss", 0.02 + noise.random() / 500),
        ("aux_loss", 0.011 + noise.random() / 1000),
        ("data_time", 0.011 + noise.random() / 500),
        ("forward_time", 0.3 + noise.random() / 100),
        ("param_norm", 100 + step / 200),
        ("update_ratio", 0.001 + noise.random() / 10_000),
        ("tflops", noise.gauss(405, 4)),
    ]


def build_gpus(folder: Path) -> dict[str, str]:
    """The stand-in library, and the environment that has programs load it."""
    library = nvml.build(folder)
    return {"LD_LIBRARY_PATH": str(library.parent), "NVML_STANDIN": str(folder / "nvml.conf")}


def write_gpus(folder: Path, ranks: Sequence[str]) -> None:
    """Eight devices at work for these processes, each with readings of its own."""
    noise = random.Random(3)
    used = [61 * nvml.GIB + noise.randrange(nvml.GIB) for _ in ranks]
    devices = [
        {
            "power": 612_000 + noise.randrange(40_000),
            "temperature": 55 + noise.randrange(9),
            "utilization_gpu": 95 + noise.randrange(5),
            "memory_used": memory,
            "processes": f"{rank}:{memory - nvml.GIB // 2}",
            "clock_sm": 1700 + 15 * noise.randrange(6),
        }
        for rank, memory in zip(ranks, used, strict=True)
    ]
    nvml.write(folder / "nvml.conf", devices)


# What the model writes ---------------------------------------------------------------------------

PREDICTIONS = """\
- quantity: step
  low: 5000
  high: 7000
  level: 0.9
  basis: 0.9 s a step since this morning
- quantity: loss
  low: 2.2
  high: 2.7
  level: 0.9
  basis: a fast fall from the uniform guess, then a slow one; a third of the steps [C1] is done
- quantity: eval_loss
  low: 2.2
  high: 2.9
  level: 0.85
  basis: a little above the training loss; data are not repeated yet
- quantity: learning_rate
  low: 2.2e-4
  high: 2.9e-4
  level: 0.95
  basis: cosine over the planned steps [C1] after the warm-up
- quantity: process.alive
  one_of: [true]
  level: 0.97
  basis: two thirds of [C1] remain
- quantity: gpu.power_share
  low: 0.6
  level: 0.85
  basis: large batches on eight devices
"""
PLAN = """\
plan:
  actions: [Let the run go on; look again after the next evaluation.]
  success_criteria: [The evaluation loss is below the last one and its course is falling.]
  failure_criteria: [The evaluation loss is above the last one twice in a row.]
evaluate_after:
  step: 7000
"""
CHECKS = ("criteria", "coherence", "numbers", "sources", "devices", "substance", "predictions")
ANSWER = """\
HEALTHY: the loss is 2.42 after 10.8, against 10.83 for a model that learns nothing; it falls.
Nothing above information was found; all eight GPUs work alike.
Look again at step 7000: the evaluation loss should be below the last one.
Details: the newest folder in monitoring-logs.
"""


class Seen:
    """What the runtime told, to be cited as a model cites it."""

    def __init__(self, project: Path) -> None:
        (file,) = (project / "monitoring-logs").glob("*/session.json")
        self.name = file.parent.name
        record = json.loads(file.read_text())
        gates = {gate["name"]: gate for gate in record["gates"]}
        self.seals = {name: gate["seal"][:12] for name, gate in gates.items()}
        self.findings = gates["compare"]["content"]["findings"]
        self.items = {
            (o["quantity"], o["stat"], o["subject"]): o
            for o in gates["collect"]["content"]["observations"]
        }
        self.criteria = {c["name"]: c for c in record["header"]["criteria"]}

    def id(self, quantity: str, stat: str = "last", subject: str | None = None) -> str:
        """An observation's id."""
        return str(self.items[quantity, stat, subject]["id"])

    def cite(self, quantity: str, stat: str = "last", subject: str | None = None) -> str:
        """An observation's value and id."""
        value = self.items[quantity, stat, subject]["value"]
        shown = f"{value:.4g}" if isinstance(value, float) else str(value)
        return f"{shown} [{self.id(quantity, stat, subject)}]"

    def criterion(self, name: str) -> str:
        """A criterion's value and id."""
        return f"{self.criteria[name]['value']:.4g} [{self.criteria[name]['id']}]"

    def assessment(self) -> str:
        """HEALTHY, with all that it owes."""
        guess, cite = self.criterion("baseline_loss"), self.cite
        return f"""\
status: HEALTHY
indicator:
  quantity: loss
  direction: decrease
  why: >-
    It is the cross-entropy that the run minimises, logged at every interval; eval_loss has few
    points yet.
expected: >-
  After the warm-up a steep fall and then a slow one for as long as the rate is high; about [P2]
  by now.
baseline: >-
  A model that learns nothing stays near the uniform guess, {guess}, and shows no trend.
reasoning: >-
  The loss is {cite("loss")} after {cite("loss", "first")} at the start, far below the uniform
  guess of {guess}. Its course is {cite("loss", "course")}, and over the recent half its slope is
  {cite("loss", "recent_slope")}. Evaluation agrees with {cite("eval_loss")} after
  {cite("eval_loss", "first")}; its course is {cite("eval_loss", "course")}. The gradient norm is
  calm at {cite("grad_norm")}. Against it speaks only that the fall is slower now than at first.
progress: [{self.id("loss")}, {self.id("loss", "course")}, {self.id("eval_loss")}]
"""

    def resources(self) -> str:
        """All devices, processes and checkpoints, and what they mean for the run."""
        shares = {s: o for (q, _, s), o in self.items.items() if q == "gpu.power_share" and s}
        least, most = (end(shares, key=lambda s: shares[s]["value"]) for end in (min, max))
        share = "gpu.power_share", "last"
        return f"""\
reasoning: >-
  All eight devices work alike: the least power share is {self.cite(*share, least)} on {least}, the
  most {self.cite(*share, most)} on {most}, and nothing holds their clocks down
  [{self.id("gpu.throttle", "last", least)}]. The process tree lives
  [{self.id("process.alive", "last", "job")}] and its memory does not grow
  [{self.id("process.rss_growth", "last", "job")}]. All sources were read. What is there lasts to
  the end of the run.
"""

    def verdict(self, found: float) -> str:
        """What a reviewer ends with."""
        seals = ", ".join(f"{name}: {seal}" for name, seal in self.seals.items())
        checks = "\n".join(f"  - {{name: {name}, passed: true}}" for name in CHECKS)
        loss = self.items["loss", "last", None]
        where = f"train.log at byte {loss['place']['offset']}, the line of step {loss['step']}"
        return f"""\
The verdict stands: the loss fell as claimed, and I found no series that turned.

```yaml
verdict: approve
seals: {{{seals}}}
reread:
  - {{observation: {loss["id"]}, found: {found:.6g}, agrees: true, how: "{where}"}}
checks:
{checks}
objections: []
unverified: []
learnings:
  - {{scope: job, text: "An evaluation is logged every five hundred steps, on a line of its own."}}
```
"""


def typed(command: str, text: str) -> str:
    """A command with its input, as a model types it."""
    return f"trainwarden {command} <<'EOF'\n{text}EOF"


def main_script(project: Path) -> Script:
    """The analyst, from the slash command to the answer."""

    def sealed(asked: Asked) -> None:
        (result,) = asked.results
        assert not result.failed, result.text

    yield call("Skill", skill="trainwarden:training-monitor", args="train.log")
    makes = [call("TaskCreate", subject=name, description="As the skill says.") for name in TASKS]
    together = makes[0]
    for one in makes[1:]:
        together &= one
    yield together
    yield bash("trainwarden begin --log train.log --config config.yaml")
    for number, command in enumerate(COMMANDS, 1):
        yield bash(f"trainwarden step {number}")
        if command == "assess":
            yield call("Skill", skill="trainwarden:distributed-monitor")
        if command == "review":
            name = Seen(project).name
            yield call(
                "Agent",
                description="Audit the session",
                prompt=f"Audit session {name}.",
                subagent_type="trainwarden:quality-reviewer",
                run_in_background=False,
            )
        given = {
            "predict": lambda: typed("predict", PREDICTIONS),
            "assess": lambda: typed("assess", Seen(project).assessment()),
            "resources": lambda: typed("resources", Seen(project).resources()),
            "troubleshoot": lambda: skip(project),
            "strategize": lambda: typed("strategize", PLAN),
        }
        asked = yield bash(given.get(command, lambda: f"trainwarden {command}")())  # noqa: B023
        sealed(asked)
        yield call("TaskUpdate", taskId=str(number), status="completed")
    yield say(ANSWER)


def skip(project: Path) -> str:
    """Step 7 where nothing asks for it."""
    found = [one for one in Seen(project).findings if one["severity"] != "info"]
    assert not found, found
    return "trainwarden troubleshoot --skip 'HEALTHY, no finding above info and no miss.'"


def reviewer_script(project: Path) -> Script:
    """The sub-agent: material, a claim read again by command and by hand, the verdict."""
    seen = Seen(project)
    yield bash(f"trainwarden review --material --session {seen.name}")
    ids = [seen.id("loss"), seen.id("loss", "course"), seen.id("eval_loss")]
    yield bash(f"trainwarden reread --session {seen.name} {' '.join(ids)}")
    loss = seen.items["loss", "last", None]
    yield call("Read", file_path=loss["place"]["file"], offset=loss["place"]["line"], limit=1)
    yield say(seen.verdict(loss["value"]))
