"""The skills beside the main one: what they name exists, and what they cost stays small."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import click
import pytest
import yaml

from trainwarden.faces.cli import cli
from trainwarden.guard.commands import simple
from trainwarden.guard.shell import parse
from trainwarden.metrics.names import canonical
from trainwarden.records.finding import CEILINGS, FindingKind

ROOT = Path(__file__).parents[2]
DOMAIN = ("grpo-monitor", "distributed-monitor", "k8s-monitor", "wandb-monitor")
PROCEDURES = ("ml-training-debugger", "experiment-planning")
SKILLS = (*DOMAIN, *PROCEDURES)
PAGES = sorted(page for name in SKILLS for page in (ROOT / "skills" / name).rglob("*.md"))

SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
QUANTITY = re.compile(r"(?:process|gpu|host|disk|checkpoint|log|kernel|source)\.[a-z_]+")
FINDINGS = re.compile(r"[Ff]indings?:? ((?:`[a-z0-9_]+`(?:,| and)?\s*)+)")
COMMAND = re.compile(r"trainwarden ([a-z]+)((?: [^`\n]*)?)")
BY_HAND = {
    "cat",
    "head",
    "jq",
    "kubectl",
    "ls",
    "py-spy",
    "sacct",
    "scontrol",
    "squeue",
    "ssh",
    "tail",
}
RUNTIME = {
    *("step", "total_steps", "loss", "eval_loss", "reward", "kl", "entropy", "grad_norm"),
    *("learning_rate", "tokens_per_second", "samples_per_second", "step_time", "mfu", "accuracy"),
}


def front(name: str) -> dict[str, str]:
    text = (ROOT / "skills" / name / "SKILL.md").read_text(encoding="utf-8")
    return dict(yaml.safe_load(text.split("---\n")[1]))


def body(name: str) -> str:
    return (ROOT / "skills" / name / "SKILL.md").read_text(encoding="utf-8").split("---\n", 2)[2]


def spans(page: Path) -> list[str]:
    """What stands in backticks, a line break inside taken as a blank."""
    return SPAN.findall(page.read_text(encoding="utf-8"))


def literals(folder: Path) -> set[str]:
    """Every string that the modules of a folder write down."""
    return {
        node.value
        for module in folder.rglob("*.py")
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def commands(page: Path) -> Iterator[tuple[str, str]]:
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"```[a-z]*\n(.*?)```", text, re.S)
    for piece in [*spans(page), *(line for block in blocks for line in block.splitlines())]:
        if found := COMMAND.match(piece.strip().removeprefix("$ ")):
            yield found[1], found[2]


@pytest.mark.parametrize("name", SKILLS)
def test_the_front_matter_offers_the_skill_in_few_words(name: str) -> None:
    head = front(name)
    assert head["name"] == name
    assert 100 <= len(head["description"]) <= 200
    assert '"' in head["description"], "as engineers say it"
    assert "Use " in head["description"]


def test_descriptions_do_not_quote_the_same_sayings() -> None:
    said = [re.findall(r'"([^"]+)"', front(name)["description"]) for name in SKILLS]
    flat = [saying.lower() for sayings in said for saying in sayings]
    assert len(flat) == len(set(flat))
    assert all(len(sayings) >= 3 for sayings in said)


@pytest.mark.parametrize("name", DOMAIN)
def test_a_domain_skill_is_small_and_has_the_parts_a_watch_needs(name: str) -> None:
    assert len(body(name)) <= 4_800
    headings = re.findall(r"^## (.+)$", body(name), re.M)
    for wanted in (
        "Look in this order",
        "Normal, though it looks bad",
        "Bad, though it looks normal",
        "Evidence",
        "First action, under observe",
    ):
        assert wanted in headings
    assert "not limits to paste" in body(name)
    assert "cannot be cited" in body(name)
    assert "`trainwarden collect`" in body(name)


@pytest.mark.parametrize("name", PROCEDURES)
def test_a_procedure_stays_readable_at_once(name: str) -> None:
    assert len(body(name).splitlines()) < 200


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).is_file(), target


@pytest.mark.parametrize("name", SKILLS)
def test_each_reference_is_linked_from_the_skill(name: str) -> None:
    linked = set(re.findall(r"\]\((references/[^)#]+)\)", body(name)))
    there = {f"references/{p.name}" for p in (ROOT / "skills" / name / "references").iterdir()}
    assert linked == there


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_runtime_commands_exist_with_their_options(page: Path) -> None:
    context = click.Context(cli)
    for name, rest in commands(page):
        command = cli.get_command(context, name)
        assert command is not None, name
        options = {o for p in command.params for o in (*p.opts, *p.secondary_opts)}
        options |= {"--help", "-h"}
        for option in re.findall(r"(?<!\S)--?[a-z][a-z-]*", rest):
            assert option in options, f"trainwarden {name} {option}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_quantities_are_those_the_runtime_observes(page: Path) -> None:
    known = literals(ROOT / "src" / "trainwarden" / "evidence")
    for span in spans(page):
        if QUANTITY.fullmatch(span):
            assert span in known, span
        if span in RUNTIME:
            assert canonical(span)[0].name == span, span


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_findings_are_kinds_that_exist(page: Path) -> None:
    kinds = set(get_args(FindingKind))
    for group in FINDINGS.findall(page.read_text(encoding="utf-8")):
        assert set(SPAN.findall(group)) <= kinds


def test_the_domain_skills_name_the_quantities_they_live_on() -> None:
    owed = {
        "grpo-monitor": {"reward", "kl", "entropy", "grad_norm", "gpu.power_share"},
        "distributed-monitor": {"process.count", "gpu.power_share", "kernel.xid", "step"},
        "k8s-monitor": {"process.restarted", "host.cgroup_oom_kills", "log.runs"},
        "wandb-monitor": {"process.alive", "log.age", "log.interval", "step"},
    }
    for name, wanted in owed.items():
        assert wanted <= set(spans(ROOT / "skills" / name / "SKILL.md"))


def test_metric_names_of_the_frameworks_reach_the_canonical_ones() -> None:
    page = ROOT / "skills" / "grpo-monitor" / "references" / "metric-names.md"
    for logged, meant in (
        ("critic/rewards/mean", "reward"),
        ("actor/entropy", "entropy"),
        ("actor/ppo_kl", "kl"),
        ("actor/grad_norm", "grad_norm"),
        ("perf/time_per_step", "step_time"),
    ):
        assert logged in spans(page)
        assert canonical(logged)[0].name == meant


def test_the_debugger_states_the_ceilings_that_the_runtime_enforces() -> None:
    for name, ceiling in CEILINGS.items():
        assert f"| `{name}` | {ceiling:.2f} |" in body("ml-training-debugger")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_nothing_of_a_plugin_that_is_not_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    skills = {path.name for path in (ROOT / "skills").iterdir()}
    for named in re.findall(r"\b([a-z0-9-]+-(?:monitor|debugger|planning|doctor))\b", text):
        assert named in skills, named


def by_hand(page: Path) -> Iterator[str]:
    """Commands, with an operand, that the skills tell to look with."""
    for span in spans(page):
        words = span.split()
        if len(words) > 1 and words[0] in BY_HAND:
            yield span


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_what_is_read_by_hand_passes_the_guard_under_observe(page: Path) -> None:
    for text in by_hand(page):
        assert [simple(one.argv, 0) for one in parse(text)] == [None] * len(parse(text)), text


def test_each_domain_skill_that_needs_more_than_the_runtime_says_with_what() -> None:
    for name in ("distributed-monitor", "k8s-monitor", "wandb-monitor"):
        assert len(list(by_hand(ROOT / "skills" / name / "SKILL.md"))) >= 3, name


@pytest.mark.parametrize("text", ["torchfrtrace FOLDER", "wandb sync FOLDER"])
def test_what_is_to_be_proposed_only_would_be_refused(text: str) -> None:
    assert any(text in spans(page) for page in PAGES)
    (one,) = parse(text)
    assert simple(one.argv, 0)
