"""What a whole watch costs in tokens, counted from what the real client sent to a scripted server.

`make bench`, or `python benchmarks/tokens.py [--json] [--keep FILE]`. The job has 8 GPUs (the
stand-in NVML library), 20 metrics and nine living processes. The scripted model reads the skill,
all nine step texts and the domain skill that gate 4 demands, keeps the nine tasks, writes what a
model writes, has the sub-agent review, and answers the user. Each piece is counted once, where it
enters a context: the slash command with the plugin's listings (against a client without a plugin),
the calls that the model writes, their results, what hooks add, the reviewer's own conversation.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import watched
from tokenizer import MARGIN, PACKAGE, count, install
from watched import COMMANDS, GPUS, METRICS, ROOT, Seen

sys.path.insert(0, str(ROOT / "tests"))

from support import nvml
from support.claude import Client, Run, executable
from support.model import Script, say
from support.procs import processes

LIMIT = 25_000


# Counting ----------------------------------------------------------------------------------------

REMINDER = re.compile(
    r"<system-reminder>\s*"
    r"(?:<total_tokens>|# Environment|You are powered by|Today's date|Attribution)"
    r".*?</system-reminder>",
    re.S,
)
"""What the client itself tells every conversation, with or without a plugin."""


@dataclass
class Bill:
    """Tokens by what they were spent on: written by a model, read by it."""

    wrote: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    read: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    words: list[tuple[str, str, str]] = field(default_factory=list)

    def add(self, part: str, text: str, *, wrote: bool = False) -> None:
        """Count a piece."""
        text = REMINDER.sub("", text)
        (self.wrote if wrote else self.read)[part] += math.ceil(count(text) * MARGIN)
        self.words.append((part, "wrote" if wrote else "read", text))

    @property
    def total(self) -> int:
        """All of it."""
        return sum(self.wrote.values()) + sum(self.read.values())


def part_of(tool: str, given: dict[str, Any]) -> str:
    """What a call belongs to."""
    if tool == "Skill":
        return "skill" if given["skill"].endswith("training-monitor") else "domain skill"
    if tool.startswith("Task"):
        return "task list"
    if tool == "Agent":
        return "step 6"
    command = str(given.get("command", ""))
    if text := re.match(r"trainwarden step (\d)", command):
        return f"text {text[1]}"
    word = command.split()[1] if command.startswith("trainwarden ") else ""
    return f"step {COMMANDS.index(word) + 1}" if word in COMMANDS else "step 1"


def blocks(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The blocks of a message; plain text is one."""
    content = message["content"]
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    else:
        yield from content


def text_of(content: Any) -> str:
    """The text of a block's content."""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or ())


def walk(bill: Bill, messages: list[dict[str, Any]], start: str, lane: str | None = None) -> None:
    """Bill every message: what no call accounts for goes to the call before it."""
    current, parts = start, {}
    for message in messages:
        for block in blocks(message):
            if block["type"] == "tool_use":
                current = lane or part_of(block["name"], block["input"])
                parts[block["id"]] = current
                written = json.dumps(block["input"], ensure_ascii=False)
                bill.add(current, f"{block['name']} {written}", wrote=True)
            elif block["type"] == "tool_result":
                bill.add(parts[block["tool_use_id"]], text_of(block.get("content")))
            elif block["type"] == "text":
                bill.add(current, block["text"], wrote=message["role"] == "assistant")


def opening(body: dict[str, Any]) -> str:
    """All that a first request holds."""
    messages = [block.get("text", "") for m in body["messages"] for block in blocks(m)]
    tools = json.dumps(body.get("tools", []), ensure_ascii=False)
    return "\n".join([text_of(body.get("system")), tools, *messages])


def bill_of(run: Run, bare: Run, agent: str) -> Bill:
    """What the watch cost."""
    bill = Bill()
    first, last = run.of()[0].body, run.of()[-1].body
    before = len(first["messages"])
    more = count(opening(first)) - count(opening(bare.of()[0].body))
    bill.read["command and listings"] = math.ceil(more * MARGIN)
    walk(bill, last["messages"][before:], "skill")
    bill.add("answer", run.final, wrote=True)
    ((*_, audit),) = run.agents
    assert agent.split("---", 2)[2].strip()[:200] in audit.system
    bill.add("reviewer", agent.split("---", 2)[2])
    walk(bill, audit.body["messages"], "reviewer", "reviewer")
    return bill


def rows(bill: Bill) -> list[tuple[str, int, int, int]]:
    """A row a part: what was written, what was read, both."""
    names = ["command and listings", "skill", "task list"]
    for number in range(1, 10):
        names += [f"text {number}", f"step {number}"]
        names += ["domain skill"] if number == 3 else ["reviewer"] if number == 6 else []
    names.append("answer")
    assert set(names) >= {*bill.wrote, *bill.read}, {*bill.wrote, *bill.read} - set(names)
    told = [(name, bill.wrote[name], bill.read[name]) for name in names]
    return [(name, wrote, read, wrote + read) for name, wrote, read in told]


def measure(folder: Path) -> tuple[Bill, int]:
    """One watch in the real client; returns its bill and how many observations it had."""
    project = folder / "project"
    watched.write_run(project)
    environment = watched.build_gpus(folder)
    client = Client(folder / "user", project, environment=environment)
    reviewer = watched.reviewer_script(project)
    with processes(project) as started:
        started.python("train.py", watched.RANKS, "--config", "config.yaml")
        watched.write_gpus(folder, (project / "ranks").read_text().split())
        (project / "train.log").touch()
        run = client.run(
            "/trainwarden:monitor train.log",
            watched.main_script(project),
            reviewer,
            CLAUDE_CODE_ENABLE_TODO_TOOLS="1",
        )
    nothing = folder / "nothing"
    (nothing / ".claude-plugin").mkdir(parents=True)
    (nothing / ".claude-plugin/plugin.json").write_text('{"name": "nothing", "version": "1.0.0"}')
    other = Client(folder / "other", project, plugin=nothing)
    bare = other.run("train.log", idle(), CLAUDE_CODE_ENABLE_TODO_TOOLS="1")
    agent = (ROOT / "agents/quality-reviewer.md").read_text()
    seen = Seen(project)
    told = {quantity for quantity, _, _ in seen.items if "." not in quantity} - {"step"}
    devices = {s for q, _, s in seen.items if q == "gpu.readable"}
    assert (len(told), len(devices)) == (METRICS, GPUS), (sorted(told), devices)
    return bill_of(run, bare, agent), len(seen.items)


def idle() -> Script:
    """A model that has nothing to do."""
    yield say("Good day.")


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--keep", type=Path, help="Write every counted piece to this file.")
    options = parser.parse_args()
    for missing, what in (
        (executable() is None, "the Claude Code client (`make client`)"),
        (nvml.compiler() is None, "a C compiler for the stand-in NVML library"),
        (install() is None, f"{PACKAGE} (npm and its registry)"),
    ):
        if missing:
            print(f"tokens of a watch: not measured, for want of {what}")
            return
    with tempfile.TemporaryDirectory(prefix="trainwarden-tokens-") as folder:
        bill, seen = measure(Path(folder))
    if options.keep:
        pieces = [f"=== {part} {how} {count(text)}\n{text}\n" for part, how, text in bill.words]
        options.keep.write_text("".join(pieces))
    table = rows(bill)
    if options.json:
        print(json.dumps({"rows": table, "total": bill.total, "limit": LIMIT, "margin": MARGIN}))
    else:
        print(f"tokens of a watch: {GPUS} GPUs, {METRICS} metrics, {seen} observations")
        print(f"({PACKAGE} times {MARGIN}, as an allowance for newer models)")
        print(f"{'':<22}{'written':>9}{'read':>9}{'both':>9}")
        for name, wrote, read, both in table:
            print(f"{name:<22}{wrote:>9,}{read:>9,}{both:>9,}")
        print(f"{'in all':<22}{'':>18}{bill.total:>9,}  (limit {LIMIT:,})")
    if bill.total > LIMIT:
        raise SystemExit("a watch costs more tokens than it may")


if __name__ == "__main__":
    main()
