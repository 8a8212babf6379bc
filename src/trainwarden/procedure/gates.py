"""Gates as Markdown: rendered from the Jinja2 templates beside this module."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from trainwarden.records.hostile import clean, fence
from trainwarden.records.session import STEPS, Gate, SessionHeader
from trainwarden.records.shown import show_amount, show_moment, show_value

if TYPE_CHECKING:
    from jinja2 import Environment

TITLES = {
    "predict": "Setup and predictions",
    "collect": "Evidence collected",
    "compare": "Predictions against actuals",
    "metrics": "Metrics assessed",
    "resources": "Resources",
    "review": "Reviewer's audit",
    "troubleshoot": "Root causes",
    "strategy": "Hypotheses and plan",
    "summary": "Summary",
}

COMMANDS = dict(
    zip(
        STEPS,
        (
            "predict",
            "collect",
            "compare",
            "assess",
            "resources",
            "review",
            "troubleshoot",
            "strategize",
            "finish",
        ),
        strict=True,
    )
)
"""The command that seals each step."""

TASKS = (
    "Step 1: Setup + Predictions",
    "Step 2: Collect Evidence",
    "Step 3: Compare Predictions vs Actuals",
    "Step 4: Analyze Metrics",
    "Step 5: Check Resources",
    "Step 6: Reviewer Audit",
    "Step 7: Troubleshoot (if needed)",
    "Step 8: Strategize",
    "Step 9: Write State",
)
"""The nine steps as an analyst's list of tasks names them."""


def file_name(step: int, revision: int) -> str:
    """`4-metrics.md`, and `4-metrics.r2.md` for its second revision."""
    suffix = f".r{revision}" if revision > 1 else ""
    return f"{step}-{STEPS[step - 1]}{suffix}.md"


_MARKUP = re.compile(r"<(?=[A-Za-z/!?])")
_BLOCK = re.compile(r"#|---|===|\*\*\*|___|```|~~~|\|")


def _short(path: str) -> str:
    """The end of a path that tells files of a session apart; gate 1 has them whole."""
    return "/".join(path.rsplit("/", 2)[-2:])


def _text(value: Any) -> str:
    lines = [_MARKUP.sub("&lt;", clean(line, 4_000)) for line in str(value).splitlines()]
    # A line of a run must not pass for a heading, a fence or a front matter of the gate.
    return "\n".join("\\" + line if _BLOCK.match(line) else line for line in lines)


def _cell(value: Any) -> str:
    return _MARKUP.sub("&lt;", clean(str(value), 400)).replace("|", "\\|")


def _excerpts(observations: list[dict[str, Any]]) -> str:
    return "\n".join(f"{item['id']}: {clean(item['text'])}" for item in observations[:60])


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from trainwarden.diagnosis.text import duration

    environment = Environment(
        loader=PackageLoader("trainwarden.procedure"),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - Markdown, and every value passes `text` or `cell`
        trim_blocks=False,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "value": show_value,
        "amount": show_amount,
        "moment": show_moment,
        "duration": duration,
        "short": _short,
        "text": _text,
        "cell": _cell,
        "fence": fence,
        "excerpts": _excerpts,
    }
    return environment


def render(gate: Gate, header: SessionHeader, following: str, **extra: Any) -> str:
    """The body of a gate's file: the sections Input, Execution, Output and Next."""
    template = _environment().get_template(f"{gate.step}-{gate.name}.md.j2")
    body = template.render(
        gate=gate,
        header=header.model_dump(mode="json"),
        content=gate.content,
        title=TITLES[gate.name],
        next=following,
        **extra,
    )
    # Blocks and loops leave blank lines behind; one between paragraphs and none in lists is right.
    body = re.sub(r"\n{3,}", "\n\n", body)
    body = re.sub(r"(?m)^(- .*)\n\n(?=- )", r"\1\n", body)
    return body.strip("\n") + "\n"
