"""Text that came from a run is data: cleaned, masked, cut and fenced before anyone reads it.

All of it takes time linear in the text (every repetition is bounded or cannot be retried) and
raises nothing, whatever the text holds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

MASK = "[masked]"

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI
    # OSC, DCS, SOS, PM, APC: one that nothing ends must not swallow the rest of the line.
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])(?:[^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c))?"
    r"|\x1b[ -/]+[0-~]|\x1b[@-Z\\-_]"
)
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_UNPAIRED = re.compile(r"[\ud800-\udfff]")
# Zero-width, bidirectional, tag, filler and variation characters: what hides or reorders text.
_INVISIBLE = re.compile(
    r"[\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    r"\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    r"\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    r"\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)

_SHAPES = (
    re.compile(
        r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?"
        r"(?:-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
        re.S,
    ),
    # A line of such a block that is read alone; a hash has only one case of letters.
    re.compile(
        r"(?m)^[ \t]{0,16}(?=[^a-z\n]{0,80}[a-z])(?=[^A-Z\n]{0,80}[A-Z])(?=[^\d\n]{0,80}\d)"
        r"[A-Za-z0-9+/]{64}(?:[A-Za-z0-9+/]{12})?[ \t\r]{0,16}$"
    ),
    re.compile(
        r"\b(?:hf_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}"
        r"|(?:glpat|glsa|gldt|pypi|nvapi|pplx|tvly|xapp|xox[abeoprs])[-_][\w-]{10,}"
        r"|(?:npm|gsk|r8|dckr_pat|dop_v1|shpat|wandb_v1)_\w{16,}|(?:sk|rk|pk)_(?:live|test)_\w{10,}"
        r"|sk-(?=[\w-]{0,40}\d|ant-|proj-)[\w-]{16,}|dapi[0-9a-f]{32}|SG\.[\w-]{16,}\.[\w-]{16,}"
        r"|A(?:KIA|SIA|GPA|IDA|ROA)[A-Z0-9]{16}\b|AIza[\w-]{30,}|ya29\.[\w-]{16,}"
        r"|AGE-SECRET-KEY-1[A-Z0-9]{20,})"
    ),
    re.compile(r"(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"),
    re.compile(r"(?i)(?<=hooks\.slack\.com/services/)[\w/-]+|(?<=/api/webhooks/)\d+/[\w-]+"),
    re.compile(r"(?i)(?<=\bbearer )[ \t]{0,4}[\w.~+/=-]{8,}"),
    re.compile(
        r"(?i)(?<=\bbasic )[ \t]{0,4}(?:[a-z0-9+/]{6,}={1,2}|(?=[a-z+/]{0,24}\d)[a-z0-9+/]{12,})"
    ),
    re.compile(
        r"(?<=://)(?:[^\s/?#:@\"'<>]{0,128}:[^\s/?#\"'<>]{1,256}|[^\s/?#:@\"'<>]{16,256})(?=@)"
    ),
    re.compile(r"(?i)(?<=[?&])((?:x-amz-|x-goog-)?(?:signature|credential)|sig|key)=[^&\s\"'#]+"),
    re.compile(r"(?i)(?<=\blogin )([^\s]{1,128}[ \t]{1,4}password)[ \t]{1,4}\S+"),
)

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_STRONG = re.compile(
    r"_(?:pass(?:word|wd|phrase|code)s?|secrets?|credentials?|creds|"
    r"(?:api|access|private|secret|session|signing|encryption|account|auth|ssh|master|license|"
    r"service|storage|shared|deploy|client|hub|wandb|consumer)_?keys?)_"
    r"|(?:api|access|auth|secret|private)key_|connection_string_"
)
_AUTH = (
    r"(?:api|app|auth|oauth|access|refresh|bearer|security|session|secret|login|jwt|csrf|xsrf|hf|"
    r"hub|face|huggingface|github|gh|gitlab|git|slack|bot|telegram|discord|wandb|neptune|comet|"
    r"clearml|mlflow|kaggle|databricks|docker|registry|pypi|npm|vault|deploy|personal|private|"
    r"service|account|client|user|identity|openai|anthropic|kube|admin|push)"
)
_WEAK = re.compile(
    rf"_{_AUTH}_?tokens?_|_authori[sz]ation_|_auth_$|_(?:set_)?cookies?_$|_dsn_$|_token_$"
)
# Names that end in `token` and speak of what a language model reads.
_TEXT_TOKEN = re.compile(
    r"_(?:per|num|n|max|min|new|next|prev|first|last|total|avg|mean|each|every|pad|padding|eos|bos|"
    r"eot|eod|unk|mask|cls|sep|image|img|video|audio|stop|special|start|end|begin|think|prompt|"
    r"text|input|output|target|label|word|sub|decoder|encoder|placeholder|newline|tool|response|"
    r"completion|instruction|by|of|ignore)_token_$"
)
_STEMS = ("pass", "secret", "cred", "token", "auth", "cookie", "dsn", "key", "connection")
_KEYWORDS = re.compile(rf"(?=[pscatdkPSCATDK])(?i:{'|'.join(_STEMS)})")
_NAME = r"A-Za-z0-9_.\-"
_LEFT = re.compile(rf"[{_NAME}]{{0,64}}\Z")
_RIGHT = re.compile(rf"[{_NAME}]{{0,64}}")
_SEPARATOR = re.compile(r"""\\?["']?\]?[ \t]{0,8}(?::=|=>|[=:])[ \t]{0,8}""")
_OPTION_SEPARATOR = re.compile(r"""\\?["']?,?[ \t]{1,8}""")
_UNQUOTED = re.compile(r"""[^\s"',;&]+""")
_SCHEME = re.compile(r"(?i)(?:bearer|basic|token|digest|negotiate|apikey)[ \t]{1,8}")
_EMPTY = re.compile(r"(?i)(?:true|false|yes|no|none|null|undefined|\*+)?[})\]]*")
_NUMBER = re.compile(r"[-+]?[\d.,]{1,24}(?:e[-+]?\d{1,4})?[kmgbt%]?[})\]]*", re.I)


def _secrecy(name: str) -> int:
    """0: hides nothing; 1: hides what is no number; 2: hides anything."""
    words = "_" + "_".join(_WORDS.findall(name[:256])).lower() + "_"
    if _STRONG.search(words):
        return 2
    return 1 if _WEAK.search(words) and not _TEXT_TOKEN.search(words) else 0


def _hides(secrecy: int, value: str) -> bool:
    if not secrecy or _EMPTY.fullmatch(value):
        return False
    return secrecy == 2 or not _NUMBER.fullmatch(value)


def _value_at(text: str, start: int) -> tuple[int, int, int]:
    """Where the value that begins at `start` lies: its begin and end, and the match's end."""
    skip = 2 if text.startswith("\\", start) and text[start + 1 : start + 2] in ('"', "'") else 1
    opening = text[start : start + skip]
    if opening[-1:] in ('"', "'"):
        begin = start + skip
        end = text.find(opening, begin, begin + 2048)
        if end >= 0:
            return begin, end, end + skip
        start = begin
    scheme = _SCHEME.match(text, start)
    value = _UNQUOTED.match(text, scheme.end() if scheme else start)
    if scheme and value:
        return value.start(), value.end(), value.end()
    value = value or _UNQUOTED.match(text, start)
    return (start, value.end(), value.end()) if value else (start, start, start)


def _mask_named(text: str) -> str:
    lower = text.lower()
    if not any(stem in lower for stem in _STEMS):
        return text
    parts: list[str] = []
    done = 0
    found = _KEYWORDS.search(text)
    while found:
        right = _RIGHT.match(text, found.end())
        after = right.end() if right else found.end()
        left = _LEFT.search(text[max(done, found.start() - 64) : found.start()])
        name = (left[0] if left else "") + text[found.start() : after]
        at = after
        secrecy = _secrecy(name)
        if secrecy:
            separator = _SEPARATOR.match(text, after)
            if not separator and name.startswith("-"):
                separator = _OPTION_SEPARATOR.match(text, after)
            if separator:
                begin, end, at = _value_at(text, separator.end())
                value = text[begin:end]
                if not value.removeprefix(MASK).strip(")]}"):
                    pass
                elif _hides(secrecy, value):
                    closers = value[len(value.rstrip(")]}")) :]
                    parts += (text[done:begin], MASK, closers)
                    done = end
                at = max(at, after)
        found = _KEYWORDS.search(text, at)
    return "".join(parts) + text[done:] if parts else text


def _replace_shape(match: re.Match[str]) -> str:
    if not match.re.groups or not match[1]:
        return MASK
    kept = match[1]
    return f"{kept}{match.string[match.end(1)]}{MASK}"


def mask(text: str) -> str:
    """Replace what looks like a secret (by its shape or by the name before it)."""
    for pattern in _SHAPES:
        text = pattern.sub(_replace_shape, text)
    return _mask_named(text)


def mask_command(argv: Sequence[str]) -> list[str]:
    """The arguments of a command with secrets masked: `--api-key X`, `--token=X`, `KEY=X`, …"""
    masked: list[str] = []
    secrecy = 0
    for argument in argv:
        if secrecy and not argument.startswith("--"):
            masked.append(MASK if _hides(secrecy, argument) else argument)
            secrecy = 0
            continue
        name, separator, value = argument.partition("=")
        secrecy = _secrecy(name) if re.fullmatch(rf"[{_NAME}/+~]{{1,128}}", name) else 0
        if separator:
            masked.append(f"{name}={MASK}" if _hides(secrecy, value) else mask(argument))
            secrecy = 0
        else:
            masked.append(mask(argument))
            secrecy = secrecy if argument.startswith("-") else 0
    return masked


def visible(text: str) -> str:
    """A text without what is not seen: escapes, invisible and reordering characters."""
    return _UNPAIRED.sub("\ufffd", _INVISIBLE.sub("", _ESCAPES.sub("", text)))


def clean(text: str, limit: int = 300) -> str:
    """One line of a run, safe to show: no escapes or controls, secrets masked, cut to `limit`.

    Cleaning what is clean changes nothing.
    """
    limit = max(limit, 1)
    # Cut first, generously, so that a line of many megabytes costs nothing.
    raw = text[: limit * 20 + 256]
    shown = _CONTROLS.sub(" ", _ESCAPES.sub("", raw))
    shown = _UNPAIRED.sub("\ufffd", _INVISIBLE.sub("", shown))
    shown = mask(shown).strip()
    if len(raw) < len(text):
        # The cut may have left the beginning of a secret too short to be known as one.
        shown = shown[:-64].strip() + "…"
    # A cut can make a harmless value look like another, so mask what is left until it stays.
    for _ in range(8):
        if len(shown) <= limit:
            break
        shown = mask(shown[: limit - 1] + "…").strip()
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def fence(text: str, label: str = "text") -> str:
    """A Markdown block that the text cannot close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    bars = "`" * max(3, longest + 1)
    return f"{bars}{re.sub(r'[^A-Za-z0-9_+-]', '', label[:64])}\n{text}\n{bars}"
