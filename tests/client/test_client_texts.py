"""What the plugin's texts ask for passes in the real client, with the leave that they bring."""

from __future__ import annotations

import re

import pytest

from support.claude import ROOT, Client
from support.model import Script, bash, call, say

STEPS = {
    "1-predict": "predict",
    "3-compare": "compare --explain -",
    "4-metrics": "assess",
    "5-resources": "resources",
    "7-troubleshoot": "troubleshoot",
    "8-strategy": "strategize",
}


def typed() -> list[str]:
    """Each input that the texts show, typed as they say; the session named is not there."""
    blocks = re.findall(
        r"```bash\n(trainwarden .*?)\n```",
        (ROOT / "skills/training-monitor/SKILL.md").read_text(encoding="utf-8"),
        re.S,
    )
    calls = [block.replace(" <<", " --session none <<", 1) for block in blocks]
    for name, command in STEPS.items():
        text = (ROOT / f"steps/{name}.md").read_text(encoding="utf-8")
        for block in re.findall(r"```yaml\n(.*?)\n```", text, re.S):
            calls.append(f"trainwarden {command} --session none <<'EOF'\n{block}\nEOF")
    return calls


def test_the_inputs_shown_need_no_leave_of_the_user(
    client: Client,
) -> None:
    client.tools = "Read"
    calls = typed()

    def main() -> Script:
        yield call("Skill", skill="trainwarden:training-monitor")
        for command in (*calls, "trainwarden collect --session none && trainwarden compare"):
            asked = yield bash(command)
            assert "trainwarden: no session none" in asked.result.text, (
                f"{command}\n{asked.result.text}"
            )
        asked = yield call("Skill", skill="trainwarden:grpo-monitor")
        assert "Launching skill" in asked.result.text
        yield say("Done.")

    run = client.run("/trainwarden:monitor", main())
    assert run.code == 0, run.errors
    assert len(calls) > 8


@pytest.mark.parametrize("name", ["monitor", "status", "resume", "incident", "plan"])
def test_each_command_reaches_the_model_with_its_arguments(client: Client, name: str) -> None:
    run = client.run(f"/trainwarden:{name} the argument given", iter_once())
    (asked,) = run.of()
    assert "$ARGUMENTS" not in asked.context
    assert "trainwarden" in asked.new
    assert "the argument given" in asked.new


def iter_once() -> Script:
    """Say one thing."""
    yield say("Heard.")


def test_the_skill_says_where_the_step_texts_are_and_what_was_asked(client: Client) -> None:
    def main() -> Script:
        asked = yield call("Skill", skill="trainwarden:training-monitor", args="logs/train 7.log")
        assert f"`{ROOT}/steps/`" in asked.new
        assert 'The job asked for: "logs/train 7.log"' in asked.new
        assert "${CLAUDE" not in asked.new
        yield say("Done.")

    run = client.run("is my run ok?", main())
    listed = run.of()[0].context
    for path in ROOT.glob("skills/*/SKILL.md"):
        (description,) = re.findall(r"^description: (.+)$", path.read_text("utf-8"), re.M)
        assert f"- trainwarden:{path.parent.name}: {description}" in listed
    for command in ("monitor", "resume", "incident", "plan"):
        assert f"- trainwarden:{command}: " not in listed, "only the user starts these"
