"""Evidence of a run that reached a client session's context before gate 1, by whatever way.

Looked for once, when `predict` is called: in what the prompts brought, in the tool calls of the
conversation (those before `begin` were nobody's to judge), and as lines of the run's own logs
anywhere in it (pasted, mentioned, printed by an inline command, notified).
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

from trainwarden.guard import prompts, record
from trainwarden.guard.shell import parse
from trainwarden.guard.tools import PLANNING, runtime_calls

MOST = 32 * 2**20
"""Bytes of a conversation that are searched, from its end."""
HEAD, TAIL = 2**20, 4 * 2**20
"""Bytes of a log whose lines are looked for."""
MOST_LINES = 150_000
FILES = 40
"""Files of one folder of evidence whose lines are looked for, the newest."""
TEXTUAL = (".log", ".out", ".err", ".jsonl", ".csv", ".tsv", "trainer_state.json")
"""What of a folder of evidence is a log; what a checkpoint keeps of config and model is not."""
PROBES = re.compile(
    r"""(?x) (?: ^ | [;&|(\n`] | \b(?:sudo|watch|ssh\s+\S+) (?:\s+-\S+)* ) \s* ['"]? (?:\S*/)?
    (nvidia-smi|nvtop|gpustat|rocm-smi|dcgmi|py-spy|ps|p?top|htop|kubectl|squeue|sacct|scontrol|sstat
    |wandb|tensorboard|mlflow) (?![\w.-])"""
)
"""Commands that show what a run does now."""
TRACKERS = re.compile(
    r"(?i)(?<![a-z])(wandb|mlflow|tensorboard|neptune|comet|clearml|grafana|prometheus|kubernetes)"
    r"(?![a-z])"
)
SAID = ("user", "assistant", "attachment", "system")
"""Entries of a conversation; the others are the client's own books."""
PATIENCE = 2.0
"""Seconds for which the conversation is waited for: the client writes it down a moment later."""
LATE = "perhaps more: the client had not yet written down what came last"
UNKNOWN = "not known what: the client keeps no transcript of what came before"
READING = ("read", "diagnose", "probe", "replay")
"""Commands of the runtime that show evidence without a session."""


def exposures(session: record.Open, data: dict[str, Any], client: str) -> list[str]:
    """What of a session's evidence is in the context, in words, and is not on record yet.

    Raises OSError where the conversation or the record cannot be read.
    """
    known = {
        event.get("what")
        for event in record.events(session.root, client)
        if event["event"] == "seen" and event.get("session") in (None, session.session)
    }
    logs = _log_lines(session)
    found = [*_from_prompts(session, logs, client), *_from_conversation(session, logs, data)]
    return [what for what in dict.fromkeys(found) if what not in known]


def unjudged(session: record.Open, data: dict[str, Any], client: str) -> list[str]:
    """The tools of calls that passed since the session was opened here and that no guard judged.

    A guard that could not even start leaves nothing but this gap between the conversation and
    its record.
    """
    events = record.events(session.root, client)
    opening = (e for e in events if e["event"] == "opened" and e.get("session") == session.session)
    opened = next(opening, {}).get("tool_use")
    judged = {event.get("tool_use") for event in events if event["event"] == "began"}
    path = str(data.get("transcript_path") or "")
    if not opened or not os.path.isfile(path):
        return []
    calls: dict[str, str] | None = None
    message, found = None, []
    for entry in _entries(path):
        said = entry.get("message")
        here = said.get("id") if isinstance(said, dict) else None
        for part in _parts(entry):
            name, use = str(part.get("name")), part.get("id")
            if part.get("type") == "tool_use" and use == opened:
                calls, message = {}, here
            elif calls is None:
                continue
            elif part.get("type") == "tool_use":
                # What was called in the same breath may have run before there was a session.
                if use not in judged and name not in PLANNING and (here is None or here != message):
                    calls[str(use)] = name
            elif part.get("type") == "tool_result" and not _kept_back(part):
                found += [calls.pop(str(part.get("tool_use_id")), "")]
    return [name for name in found if name]


def told(session: record.Open, prompt: str, folders: list[str]) -> list[str]:
    """What of a session's evidence a prompt brings, in words."""
    found = _mentioned(session, prompts.mentions(prompt, folders))
    logs = _log_lines(session)
    met = [logs[line] for line in prompts.lines(prompt) if line in logs]
    if met:
        found.append(_pasted(len(met), met[0]))
    elif count := prompts.readings(prompt):
        found.append(_looks_like(count))
    return found


def _from_prompts(session: record.Open, logs: dict[str, str], client: str) -> Iterator[str]:
    kept = prompts.recalled(client)
    digests = {prompts.digest(line): name for line, name in logs.items()} if kept else {}
    for prompt in kept:
        yield from _mentioned(session, prompt["mentions"])
        met = [digests[line] for line in prompt["lines"] if line in digests]
        if met:
            yield _pasted(len(met), met[0])
        elif prompt["readings"]:
            yield _looks_like(prompt["readings"])


def _mentioned(session: record.Open, paths: list[str]) -> list[str]:
    evidence = [path for path in paths if _touches(session, path)]
    evidence += [path for path in paths if not os.path.isabs(path)]
    return [f"a prompt mentioned @{path}" for path in evidence]


def _pasted(count: int, name: str) -> str:
    return f"a prompt had {_lines(count)} of {name}"


def _looks_like(count: int) -> str:
    return f"a prompt had {_lines(count)} that look{'s' if count == 1 else ''} like a training log"


def _lines(count: int) -> str:
    return f"{count} line{'' if count == 1 else 's'}"


def _from_conversation(
    session: record.Open, logs: dict[str, str], data: dict[str, Any]
) -> Iterator[str]:
    path = str(data.get("transcript_path") or "")
    if not os.path.isfile(path):
        yield UNKNOWN
        return
    if not _caught_up(path, str(data.get("tool_use_id") or "")):
        yield LATE
    yield from _in_one(session, logs, path, "")
    agents = os.path.join(os.path.splitext(path)[0], "subagents")
    for name in sorted(os.listdir(agents)) if os.path.isdir(agents) else ():
        if name.endswith(".jsonl"):
            yield from _in_one(session, {}, os.path.join(agents, name), "a sub-agent: ")


def _caught_up(path: str, use: str) -> bool:
    """Wait until a conversation has the call that is judged now, and so all that came before."""
    until = time.monotonic() + PATIENCE
    with open(path, "rb") as file:
        while use:
            file.seek(max(0, os.path.getsize(path) - HEAD))
            if use.encode() in file.read():
                return True
            if time.monotonic() > until:
                return False
            time.sleep(0.01)
    return True


def _in_one(session: record.Open, logs: dict[str, str], path: str, who: str) -> Iterator[str]:
    """From one conversation: calls that were answered and touch evidence, and lines of logs."""
    calls: dict[str, str] = {}
    own: set[str] = set()
    answered: list[str] = []
    met: dict[tuple[str, str], set[str]] = {}
    for entry in _entries(path):
        for part in _parts(entry):
            kind, where = part.get("type"), "the conversation"
            if kind == "tool_use":
                touched, of_runtime = _about(session, part, str(entry.get("cwd") or session.root))
                if of_runtime:
                    own.add(str(part.get("id")))
                elif touched:
                    calls[str(part.get("id"))] = touched
                continue
            if kind == "tool_result":
                use, where = str(part.get("tool_use_id")), "a tool's result"
                if use in own:
                    continue
                if use in calls and not _kept_back(part):
                    answered.append(calls[use])
            elif kind == "image":
                answered.append("a prompt had an image")
            for text in _texts(part) if logs else ():
                for line in prompts.lines(text):
                    if line in logs:
                        met.setdefault((logs[line], where), set()).add(line)
    yield from (who + what for what in dict.fromkeys(answered))
    for (name, where), lines in met.items():
        if len(lines) == 1 and prompts.measures(*lines) < 2:
            continue  # a log may well repeat one line of the code
        yield f"{who}{where} had {_lines(len(lines))} of {name}"


def _kept_back(result: dict[str, Any]) -> bool:
    """Whether a call came to nothing; a command that failed may still have printed."""
    return bool(result.get("is_error")) and not any("Exit code" in text for text in _texts(result))


def _entries(path: str) -> Iterator[dict[str, Any]]:
    """What was said and done, by whomever; not the client's own book-keeping."""
    with open(path, "rb") as file:
        if os.path.getsize(path) > MOST:
            file.seek(-MOST, os.SEEK_END)
            file.readline()
        for line in file:
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if not isinstance(entry, dict) or entry.get("type") not in SAID:
                continue
            if entry.get("subtype") != "informational":  # as where a prompt was held back
                yield entry


def _parts(entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        yield from (part for part in content if isinstance(part, dict))
        return
    attached = entry.get("attachment")
    if isinstance(attached, dict) and attached.get("type") in ("prompt_snapshot", "skill_listing"):
        return
    yield {"type": "text", "text": content if content is not None else attached or entry}


def _texts(value: Any) -> Iterator[str]:
    """Every text inside of some data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def _about(session: record.Open, part: dict[str, Any], cwd: str) -> tuple[str, bool]:
    """What evidence a call touches, in words, and whether it is the runtime's own."""
    tool, asked = str(part.get("name")), part.get("input")
    asked = asked if isinstance(asked, dict) else {}
    command = asked.get("command")
    if isinstance(command, str):
        own = runtime_calls(command) or []
        shows = [word for words in own for word in words[1:2] if word in READING]
        if shows:
            return f"{tool} was used for trainwarden {shows[0]}", False
        if own and len(parse(command)) == len(own):
            return "", True
        probe = PROBES.search(command)
        if probe:
            return f"{tool} was used for {probe.group(1)}", False
    if tool.startswith("mcp__") or isinstance(asked.get("url"), str):
        tracker = TRACKERS.search(tool) or TRACKERS.search(str(asked.get("url", "")))
        if tracker:
            return f"{tool} was used for {tracker.group().lower()}", False
    for text in _texts(asked):
        for word in _words(session, text[:20_000]):
            path = os.path.normpath(os.path.join(cwd, os.path.expanduser(word)))
            if _touches(session, path):
                return f"{tool} was used on {word[:200]}", False
    return "", False


def _words(session: record.Open, text: str) -> Iterator[str]:
    """What of a text may be a path: all of it, evidence spelt out in it, or a word of a command."""
    if "\n" not in text:
        yield text
    for evidence in session.evidence:
        if re.search(re.escape(evidence) + r"(?![\w.-])", text):
            yield evidence
    yield from filter(None, re.split(r"""[\s'"`;|&()<>=,]+""", text))


def _touches(session: record.Open, path: str) -> bool:
    """Whether a path is evidence, lies in it, or (a glob, a bare name) may mean it."""
    for evidence in session.evidence:
        if path == evidence or path.startswith(evidence.rstrip("/") + "/"):
            return True
        name = os.path.basename(evidence)
        if os.path.basename(path) == name and "." in name[1:]:
            return True
        if any(sign in path for sign in "*?[") and fnmatch.fnmatch(evidence, path):
            return True
    return False


def _log_lines(session: record.Open) -> dict[str, str]:
    """The distinctive lines of a job's logs, each with its log's name; not those of its config."""
    lines: dict[str, str] = {}
    for path in _files(session.evidence):
        for line in prompts.lines(_ends(path)):
            if prompts.distinctive(line):
                lines.setdefault(line, os.path.basename(path))
        if len(lines) > MOST_LINES:
            break
    for path in _files(session.config):
        if not _touches(session, path):
            for line in prompts.lines(_ends(path)):
                lines.pop(line, None)
    return lines


def _files(paths: list[str]) -> Iterator[str]:
    """The files among paths, and the newest textual ones of the folders among them."""
    for path in paths:
        if os.path.isdir(path):
            inside = (
                os.path.join(folder, name)
                for folder, _, names in os.walk(path)
                for name in names
                if name.lower().endswith(TEXTUAL)
            )
            first = [file for file in islice(inside, 20_000) if os.path.isfile(file)]
            yield from sorted(first, key=os.path.getmtime)[-FILES:]
        elif os.path.isfile(path):
            yield path


def _ends(path: str) -> str:
    """A file's beginning and end as text; nothing of one that cannot be read."""
    try:
        with open(path, "rb") as file:
            head = file.read(HEAD)
            size = file.seek(0, os.SEEK_END)
            file.seek(max(len(head), size - TAIL))
            return (head + b"\n" + file.read(TAIL)).decode("utf-8", "replace")
    except OSError:
        return ""
