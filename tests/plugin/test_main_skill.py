"""The main skill, the reviewer and the commands: what they say is what the runtime takes."""

import re
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from pydantic import TypeAdapter

from trainwarden.faces import cli, doctor
from trainwarden.procedure import foresight
from trainwarden.procedure.grounding import CITATION, Citable
from trainwarden.records.prediction import Prediction
from trainwarden.records.review import Review
from trainwarden.records.session import STEPS

ROOT = Path(__file__).parents[2]
SKILL = ROOT / "skills/training-monitor/SKILL.md"
DOCTOR = ROOT / "skills/monitor-doctor/SKILL.md"
REVIEWER = ROOT / "agents/quality-reviewer.md"
COMMANDS = sorted((ROOT / "commands").glob("*.md"))
TASKS = [
    "Step 1: Setup + Predictions",
    "Step 2: Collect Evidence",
    "Step 3: Compare Predictions vs Actuals",
    "Step 4: Analyze Metrics",
    "Step 5: Check Resources",
    "Step 6: Reviewer Audit",
    "Step 7: Troubleshoot (if needed)",
    "Step 8: Strategize",
    "Step 9: Write State",
]
SEALS = {
    "predict": "predict",
    "collect": "collect",
    "compare": "compare",
    "metrics": "assess",
    "resources": "resources",
    "review": "review",
    "troubleshoot": "troubleshoot",
    "strategy": "strategize",
    "summary": "finish",
}


def parts(path: Path) -> tuple[dict[str, Any], str]:
    """Front matter and body."""
    _, front, body = path.read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(front), body


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def step_rows() -> list[list[str]]:
    lines = [line for line in parts(SKILL)[1].splitlines() if line.startswith("| Step ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def heredocs(path: Path) -> dict[str, Any]:
    """Subcommand to the input shown for it."""
    pattern = r"^trainwarden (\w+) <<'EOF'\n(.*?)\nEOF$"
    found = re.findall(pattern, parts(path)[1], re.S | re.M)
    return {name: yaml.safe_load(text) for name, text in found}


def verdict() -> dict[str, Any]:
    (block,) = re.findall(r"```yaml\n(.*?)```", parts(REVIEWER)[1], re.S)
    found = yaml.safe_load(block)
    assert isinstance(found, dict)
    return found


def test_nine_tasks_named_exactly_each_with_its_command_and_its_text() -> None:
    rows = step_rows()
    assert [row[0] for row in rows] == TASKS
    for row, (number, step) in zip(rows, enumerate(STEPS, 1), strict=True):
        assert re.match(r"`(\w+)`", row[2])[1] == SEALS[step]  # type: ignore[index]
        assert row[3] == f"{number}-{step}.md"
        assert (ROOT / "steps" / row[3]).is_file()
    assert "`${CLAUDE_PLUGIN_ROOT}/steps/`" in parts(SKILL)[1]


@pytest.mark.parametrize(
    ("path", "lines", "characters"),
    [(SKILL, 300, 10_000), (DOCTOR, 300, 8_000), (REVIEWER, 120, 4_000)],
    ids=lambda value: value.stem if isinstance(value, Path) else "",
)
def test_texts_are_short(path: Path, lines: int, characters: int) -> None:
    """They are paid for in each session: some four characters make a token."""
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < lines
    assert len(text) <= characters
    assert max(len(line) for line in text.splitlines() if line[:1] not in "|d-") <= 130


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_commands_load_what_exists_and_read_nothing_by_themselves(path: Path) -> None:
    front, body = parts(path)
    assert front["description"]
    assert len(body) < 1_000
    assert "!`" not in body
    assert "@" not in body
    assert ("argument-hint" in front) == ("$ARGUMENTS" in body)
    for rule in re.findall(r"Skill\(([^)]+)\)", front["allowed-tools"]):
        assert f"`{rule}`" in body


def test_the_five_commands() -> None:
    assert [path.stem for path in COMMANDS] == ["incident", "monitor", "plan", "resume", "status"]


def test_predictions_shown_would_be_sealed() -> None:
    predictions = TypeAdapter(tuple[Prediction, ...]).validate_python(heredocs(SKILL)["predict"])
    assert foresight.prediction_complaints(predictions) == []


def test_numbers_shown_cite_where_they_come_from() -> None:
    reasoning = heredocs(SKILL)["resources"]["reasoning"]
    assert [c for c in Citable().complaints("x", reasoning) if "has no source" in c] == []


def test_citations_are_of_the_kinds_that_exist() -> None:
    for path in (SKILL, REVIEWER):
        for cited in re.findall(r"\[[A-Z]\d[\d-]*\]", path.read_text(encoding="utf-8")):
            assert CITATION.fullmatch(cited), cited


def test_heredocs_are_quoted_and_nothing_else_is_in_the_call() -> None:
    for block in re.findall(r"```bash\n(.*?)```", parts(SKILL)[1], re.S):
        assert re.fullmatch(r"trainwarden \w+ <<'EOF'\n.*\nEOF\n", block, re.S)


def test_no_input_shown_makes_the_client_ask_the_user() -> None:
    """It stops at braces around quotes in a call, whatever is allowed."""
    shown = [
        (SKILL.name, block) for block in re.findall(r"```bash\n(.*?)```", text_of(SKILL), re.S)
    ]
    for path in sorted((ROOT / "steps").glob("[1-57-9]-*.md")):
        shown += [
            (path.name, block) for block in re.findall(r"```yaml\n(.*?)```", text_of(path), re.S)
        ]
    for name in ("predict", "compare", "assess", "resources", "troubleshoot", "strategize"):
        command = cli.cli.get_command(click.Context(cli.cli), name)
        assert command is not None
        assert command.epilog
        shown.append((f"{name} --help", command.epilog))
    for where, block in shown:
        assert not re.search(r"\{[^{}]*[\"'][^{}]*\}", block), where


def test_the_reviewers_verdict_is_one_that_is_taken() -> None:
    given = verdict()
    assert set(given) == set(Review.model_fields) - {"reviewer"}
    review = Review.model_validate({"reviewer": "quality-reviewer", **given})
    assert list(review.seals) == list(STEPS[:5])
    assert all(re.fullmatch(r"[0-9a-f]{12,64}", seal) for seal in review.seals.values())
    assert review.verdict == "reject"
    assert review.objections
    assert not all(check.passed for check in review.checks)


def test_the_reviewer_checks_what_its_step_text_asks_and_can_only_look() -> None:
    front, body = parts(REVIEWER)
    assert front["name"] == REVIEWER.stem
    assert front["tools"] == "Read, Grep, Glob, Bash"
    text = (ROOT / "steps/6-review.md").read_text(encoding="utf-8")
    for name in re.findall(r"^   - (\w+):", body, re.M):
        assert name in text
    assert len(re.findall(r"^   - (\w+):", body, re.M)) == 7


@pytest.mark.parametrize("path", [SKILL, DOCTOR], ids=lambda path: path.parent.name)
def test_a_skill_is_named_as_its_folder_and_says_what_and_when(path: Path) -> None:
    front, _ = parts(path)
    assert front["name"] == path.parent.name
    assert "Use " in front["description"]
    assert 100 < len(front["description"]) <= 200


def test_the_descriptions_leave_room_for_all_of_them() -> None:
    """The client has about 1,800 characters left for a plugin's; beyond, it lists bare names."""
    said = {path.parent.name: parts(path)[0]["description"] for path in ROOT.glob("skills/*/*.md")}
    assert len(said) == 8
    assert sum(map(len, said.values())) <= 1_500
    assert "is my run ok?" in said["training-monitor"]
    assert "loss went NaN" in said["ml-training-debugger"]
    assert "reward flat" in said["grpo-monitor"]
    assert "plan this ablation" in said["experiment-planning"]


def test_each_line_of_doctor_is_explained() -> None:
    lines = re.findall(r"^\| ([\w, -]+) \|", parts(DOCTOR)[1], re.M)
    named = [name for line in lines for name in line.split(", ")]
    assert named[:2] == ["line", "---"]
    assert named[2:] == list(doctor.CHECKS)
