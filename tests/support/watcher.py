"""An analyst and a reviewer for the scripted model: they type what the built-in rules would say."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import yaml

from support.claude import front_matter
from support.cli import call as command
from support.model import Asked, Script, Turn, bash, call, say
from trainwarden.analysts.reviewer import BuiltinReviewer
from trainwarden.analysts.rules import RulesAnalyst
from trainwarden.guard import record
from trainwarden.procedure.session import Session
from trainwarden.procedure.state import StateStore

REVIEWER = "trainwarden:quality-reviewer"
BEGIN = "trainwarden begin --log train.log --config config.yaml"

Part = Generator[Turn, Asked, Asked]
"""Some turns of a script; gives back what was asked last."""


def typed(command: str, data: Any) -> str:
    """A command with its input, as a model types it: the client asks before braces with quotes."""
    text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=1000)
    return f"{command} <<'EOF'\n{text}EOF"


def leave() -> Turn:
    """End the turn with whatever gates are open, as a model that waits for its user does."""
    return say("The user is to say how to go on; " + ", ".join(f"gate {n}" for n in range(1, 10)))


class Watcher:
    """Knows a project's newest session, and what to answer at each step."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.rules = RulesAnalyst()

    @property
    def folder(self) -> Path:
        """The newest session's folder."""
        return max((self.project / "monitoring-logs").glob("*/session.json")).parent

    @property
    def session(self) -> Session:
        """The newest session as it stands on disk."""
        return Session.resume(StateStore(self.project), self.folder)

    def _answers(self, method: Callable[..., Any]) -> Any:
        given = method(self.session.briefing())
        if isinstance(given, tuple):
            return [one.model_dump(mode="json", exclude={"id"}) for one in given]
        return given if isinstance(given, str) else given.model_dump(mode="json")

    def command(self, step: str) -> str:
        """What is typed to seal a step."""
        if step == "predict":
            return typed("trainwarden predict", self._answers(self.rules.predict))
        if step == "assess":
            return typed("trainwarden assess", self._answers(self.rules.assess))
        if step == "resources":
            reasoning = self._answers(self.rules.resources)
            return typed("trainwarden resources", {"reasoning": reasoning})
        if step == "troubleshoot":
            return typed("trainwarden troubleshoot", self._answers(self.rules.troubleshoot))
        if step == "strategize":
            return typed("trainwarden strategize", self._answers(self.rules.strategize))
        return f"trainwarden {step}"

    def verdict(self, **changes: Any) -> str:
        """What the reviewer ends with: the built-in reviewer's findings as a fenced block."""
        review = BuiltinReviewer().review(self.session.record, self.project)
        data = review.model_dump(mode="json", exclude={"reviewer"}) | changes
        data["seals"] = {name: seal[:16] for name, seal in data["seals"].items()}
        return f"The gates were read.\n\n```yaml\n{yaml.safe_dump(data, sort_keys=False)}```\n"

    def begin(self) -> Part:
        """Open the session."""
        asked = yield bash(BEGIN)
        assert not asked.result.failed, asked.result.text
        return asked

    def seal(self, *steps: str) -> Part:
        """Seal steps, each with its command; the last one's exit code is the run's status."""
        for step in steps:
            asked = yield bash(self.command(step))
            assert "\nsealed " in f"\n{asked.result.text}", f"{step}: {asked.result.text}"
            assert step == "finish" or not asked.result.failed, f"{step}: {asked.result.text}"
        return asked

    def until_review(self) -> Part:
        """Open a session and seal gates 1 to 5."""
        yield from self.begin()
        return (yield from self.seal("predict", "collect", "compare", "assess", "resources"))

    def ask_reviewer(self, background: bool = False, kind: str = REVIEWER) -> Part:
        """Have the sub-agent review; in the background, wait for its notification."""
        asked = yield call(
            "Agent",
            description="Review gates 1 to 5",
            prompt="Audit gates 1 to 5 of the session that is open, and end with your verdict.",
            subagent_type=kind,
            run_in_background=background,
        )
        assert not asked.result.failed, asked.result.text
        if background:
            asked = yield say("Gates 6 to 9 are open; waiting for the reviewer's verdict.")
            assert "<task-notification>" in asked.new, asked.new
        return asked

    def watch(self, background: bool = False) -> Part:
        """The whole session, to gate 9."""
        yield from self.until_review()
        yield from self.ask_reviewer(background)
        return (yield from self.seal("review", "troubleshoot", "strategize", "finish"))

    def check_whole(self) -> None:
        """Nine gates, each guarded, every seal holds, and nothing is held open."""
        gates = sorted(self.folder.glob("[1-9]-*.md"))
        assert [gate.name[0] for gate in gates] == list("123456789")
        unguarded = [gate.name for gate in gates if front_matter(gate)["guarded"] is not True]
        assert unguarded == []
        checked = command("verify", self.folder.name, "--root", self.project)
        assert checked.returncode == 0, checked.stdout + checked.stderr
        assert record.open_names(str(self.project)) == []

    def reviewer(self, **changes: Any) -> Script:
        """The sub-agent's script: read the gates and a claim's source, then give the verdict."""
        asked = yield bash("trainwarden review --material")
        assert not asked.result.failed, asked.result.text
        asked = yield call("Read", file_path=str(self.folder / "4-metrics.md"))
        assert not asked.result.failed, asked.result.text
        yield say(self.verdict(**changes))
