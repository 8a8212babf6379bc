"""Text that came from a run is data: cleaned, masked, cut and fenced before anyone reads it."""

from __future__ import annotations

import re

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC, DCS, SOS, PM, APC
    r"|\x1b[@-Z\\-_]|\x1b[ -/]+[0-~]"
)
_CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)
MASK = "[masked]"
_SENSITIVE = (
    r"[A-Za-z0-9_.-]*(?:api[_-]?key|access[_-]?key|secret|token|passwd|password|credential|"
    r"private[_-]?key|auth(?:orization)?|session[_-]?key|dsn|cookie)"
)
# Names such as tokens_per_second or num_tokens count tokens and hide nothing.
_COUNTS = re.compile(
    r"(?i)tokens|token_(?:id|count|acc|type|len)|num_token|per_token|tokeniz|author(?!i)"
)
SECRETS = (
    re.compile(
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S
    ),
    re.compile(
        r"\b(?:hf|ghp|gho|ghu|ghs|github_pat|glpat|xox[abprs]|pypi|npm)[_-][A-Za-z0-9_-]{16,}"
    ),
    re.compile(r"\bsk-[A-Za-z0-9_-]{16,}"),
    re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    re.compile(r"\bAIza[A-Za-z0-9_-]{30,}"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    re.compile(r"(?i)(?<=bearer )[A-Za-z0-9._~+/=-]{8,}"),
    re.compile(r"(?<=://)[^\s/:@]+:[^\s/@]+(?=@)"),
)
_NAMED = re.compile(
    rf"""(?ix)(?P<name>{_SENSITIVE})(?P<sep>["']?\s*[=:]\s*|\s+)(?P<quote>["']?)(?P<value>[^\s"',;&]+)"""
)


def is_secret_name(name: str) -> bool:
    """Whether a variable, option or config key of this name is to be hidden."""
    return bool(re.fullmatch(rf"(?i)-*{_SENSITIVE}[A-Za-z0-9_]*", name)) and not _COUNTS.search(
        name
    )


def _mask_named(match: re.Match[str]) -> str:
    name, sep, value = match["name"], match["sep"], match["value"]
    option = name.startswith("-") or match.string[max(0, match.start() - 2) : match.start()] == "--"
    if _COUNTS.search(name + value[:0]) or (not sep.strip(" \t\"'") and not option):
        return match[0]
    if re.fullmatch(r"[-+]?[\d.]{1,6}|true|false|none|null", value, re.I):
        return match[0]
    return f"{name}{sep}{match['quote']}{MASK}"


def mask(text: str) -> str:
    """Replace what looks like a secret (by its shape or by the name before it)."""
    for pattern in SECRETS:
        text = pattern.sub(MASK, text)
    return _NAMED.sub(_mask_named, text)


def clean(text: str, limit: int = 300) -> str:
    """One line of a run, safe to show: no escapes or controls, secrets masked, cut to `limit`."""
    # Cut first, generously, so that a line of many megabytes costs nothing.
    text = _CONTROLS.sub(" ", _ESCAPES.sub("", text[: limit * 20])).replace("\n", " ")
    text = mask(text).strip()
    return text if len(text) <= limit else text[: limit - 1] + "…"


def fence(text: str, label: str = "text") -> str:
    """A Markdown block that the text cannot close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    bars = "`" * max(3, longest + 1)
    return f"{bars}{label}\n{text}\n{bars}"
