"""Answers the events that are no tool calls: starts, prompts, tasks, sub-agents, stops."""

from __future__ import annotations

import os
import re
from typing import Any

from trainwarden.guard import record
from trainwarden.guard.tools import REVIEWER

TASKS = (
    "Setup + Predictions",
    "Collect Evidence",
    "Compare Predictions vs Actuals",
    "Analyze Metrics",
    "Check Resources",
    "Reviewer Audit",
    "Troubleshoot (if needed)",
    "Strategize",
    "Write State",
)
OWN = "trainwarden:"
SHOWN = 3
"""Sessions of other clients that are named at the start."""

_STEP = re.compile(r"(?i)^\s*(?:\W*\s)?step\s*([1-9])\b")
_NOTIFIED = re.compile(r"^\s*<(?:task-notification|monitor-|bash-notification|agent-notification)")
_FENCED = re.compile(r"(?ms)^\s*```ya?ml\s*$(.*?)^\s*```\s*$")
_SKILL = re.compile(r"^\s*/" + OWN + r"([\w-]+)")


class Heard:
    """An event with what is open."""

    def __init__(self, data: dict[str, Any], project: str, client: str, plugin: str) -> None:
        self.data = data
        self.project = project
        self.client = client
        self.plugin = plugin
        self.name = str(data.get("hook_event_name"))
        self.held, self.open_in_all = record.open_sessions(project, client)

    def note(self, event: str, **fields: Any) -> None:
        """Add to the client's record."""
        record.append(self.project, self.client, event, **fields)

    def context(self, texts: list[str]) -> dict[str, Any] | None:
        """Lines for the model, if there are any."""
        if not texts:
            return None
        said = {"hookEventName": self.name, "additionalContext": "\n".join(texts)}
        return {"hookSpecificOutput": said}


def answer(
    data: dict[str, Any], project: str, client: str, plugin: str
) -> dict[str, Any] | str | None:
    """What the client is told of an event: an object to print, a refusal (exit 2), or nothing."""
    heard = Heard(data, project, client, plugin)
    handler = HANDLERS.get(heard.name)
    return handler(heard) if handler else None


def session_start(heard: Heard) -> dict[str, Any] | None:
    """Tell the runtime where it is, the model where it stands."""
    _export(heard.project)
    from trainwarden.guard import prompts

    prompts.forget_old()
    texts = [standing(session) for session in heard.held]
    if heard.held:
        loaded = [
            e["name"]
            for e in record.events(heard.project, heard.client)
            if e["event"] == "skill" and isinstance(e.get("name"), str)
        ]
        names = ", ".join(OWN + name for name in dict.fromkeys(loaded)) or "none"
        texts.append(
            f"Skills loaded so far: {names}. Where their text is no longer in your "
            f"context, load them again, {OWN}training-monitor first."
        )
    elif heard.open_in_all and heard.data.get("source") != "compact":
        texts.append(_of_others(heard))
    return heard.context(texts)


def standing(session: record.Open) -> str:
    """Where an open session stands, in a few lines."""
    n = session.next
    sealed = "no gate is sealed yet" if n == 1 else f"gates 1 to {n - 1} are sealed"
    revised = f" (revision {session.revision})" if session.revision > 1 else ""
    before = " Before gate 1 only config and code can be read; predict from them." if n == 1 else ""
    return (
        f"trainwarden: session {session.session} watches job {session.job} under authority "
        f"{session.authority}; {sealed}{revised}. Next is step {n}, {TASKS[n - 1]}: "
        f"`{session.command}` (`trainwarden step {n}` says what it asks).{before} Still open: "
        f"{_gates(n)}. `trainwarden status` lists the steps; "
        f"`trainwarden abandon --why '…'` ends the session."
    )


def _gates(first: int) -> str:
    return "gate 9" if first == 9 else f"gates {first} to 9"


def _of_others(heard: Heard) -> str:
    count = heard.open_in_all
    start = record.plain(heard.client) + "."
    names = sorted(n for n in record.open_names(heard.project) if not n.startswith(start))
    shown = []
    for name in names[-SHOWN:]:
        try:
            session = record.opened(heard.project, name)
        except (OSError, ValueError, KeyError):
            continue
        if session:
            shown.append(f"{session.session} (job {session.job}, step {session.next})")
    said = "1 watch is" if count == 1 else f"{count} watches are"
    listed = f": {', '.join(shown)}" if shown else ""
    more = " and more" if shown and count > len(shown) else ""
    return (
        f"trainwarden: {said} unfinished in this project{listed}{more}, opened by another client "
        f"session. If the user asks for it, /{OWN}resume takes one up. Until they end, nothing "
        "but the runtime may write below monitoring-logs/."
    )


def _export(project: str) -> None:
    """Give Bash what the runtime needs to find project and data, by the client's own file."""
    path = os.environ.get("CLAUDE_ENV_FILE")
    if not path:
        return
    values = {"TRAINWARDEN_ROOT": project, "TRAINWARDEN_DATA": os.environ.get("CLAUDE_PLUGIN_DATA")}
    lines = [f"export {name}={_quoted(value)}\n" for name, value in values.items() if value]
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            there = file.readlines()
    except FileNotFoundError:
        there = []
    with open(path, "a", encoding="utf-8", errors="surrogateescape") as file:
        file.write("".join(line for line in lines if line not in there))


def _quoted(value: str) -> str:
    """A value as a shell word."""
    return "'" + value.replace("'", "'\\''") + "'"


def prompt(heard: Heard) -> dict[str, Any] | None:
    """Note what a prompt brings; before gate 1 let no notification in."""
    from trainwarden.guard import prompts

    text = str(heard.data.get("prompt", ""))
    early = [session for session in heard.held if session.next == 1]
    if _NOTIFIED.match(text):
        if not early:
            return None
        why = _held_back(early[0])
        heard.note("refused", tool_use="", tool="notification", why=why)
        return {"decision": "block", "reason": why}
    asked = _SKILL.match(text)
    if asked:
        _loaded(heard, asked.group(1))
    folders = _folders(heard)
    if not early:
        prompts.remember(text, heard.client, folders)
        return None
    from trainwarden.guard.transcript import told

    said = []
    for session in early:
        for what in told(session, text, folders):
            heard.note("seen", what=what, session=session.session)
            said.append(
                f"trainwarden: {what}. Gate 1 will say that this was seen before "
                "predicting. Predict from config and code all the same."
            )
    return heard.context(said)


def _held_back(session: record.Open) -> str:
    return (
        "trainwarden: a notification was held back, since it may carry what the run does now and "
        f"gate 1 of session {session.session} is not sealed. After `{session.command}` its output "
        "can be read."
    )


def skill(heard: Heard) -> None:
    """Note a skill of the plugin that the client loaded for the main agent."""
    response = heard.data.get("tool_response")
    asked = heard.data.get("tool_input")
    if heard.data.get("agent_id") or heard.data.get("tool_name") != "Skill":
        return
    if not isinstance(response, dict) or response.get("success") is False:
        return
    name = response.get("commandName") or (asked or {}).get("skill")
    if isinstance(name, str) and name.startswith(OWN):
        _loaded(heard, name[len(OWN) :])


def _loaded(heard: Heard, name: str) -> None:
    """Note a skill if it was the plugin's own, and not another one by its name."""
    if not heard.held and not name.endswith("-monitor"):
        return  # what begins no watch leaves nothing in a project
    from trainwarden.guard.skills import foreign

    skills = os.path.join(heard.plugin, "skills")
    if not foreign(OWN + name, heard.plugin, _folders(heard)) and name in os.listdir(skills):
        heard.note("skill", name=name)


def _folders(heard: Heard) -> list[str]:
    return [folder for folder in (str(heard.data.get("cwd") or ""), heard.project) if folder]


def task_completed(heard: Heard) -> str | None:
    """Refuse that a step's task is completed before its gate is sealed."""
    subject = str(heard.data.get("task_subject", ""))
    named = _STEP.match(subject)
    for session in heard.held:
        if named and session.next <= int(named.group(1)):
            return (
                f"trainwarden: gate {named.group(1)} of session {session.session} is not sealed, "
                f"so this task is not done. Next is step {session.next}: `{session.command}`."
            )
    return None


def agent_start(heard: Heard) -> None:
    """Note that the reviewer started, the plugin's own and not another one by its name."""
    if not heard.held or heard.data.get("agent_type") != REVIEWER:
        return
    from trainwarden.guard.skills import other_reviewer

    if other_reviewer(_folders(heard)) is None:
        heard.note("agent-start", agent=str(heard.data.get("agent_id")), agent_type=REVIEWER)


def agent_stop(heard: Heard) -> dict[str, Any] | None:
    """Note the reviewer's last message; send it back once where that has no verdict."""
    if not heard.held or heard.data.get("agent_type") != REVIEWER:
        return None
    message = str(heard.data.get("last_assistant_message") or "")
    verdict = any("verdict:" in block for block in _FENCED.findall(message))
    if not verdict and not heard.data.get("stop_hook_active"):
        return {
            "decision": "block",
            "reason": (
                "trainwarden: your last message has no verdict that the runtime can read. End "
                "with one fenced ```yaml block: verdict, seals (the five you read), reread, "
                "checks, objections, unverified, learnings, as `trainwarden step 6` shows them."
            ),
        }
    agent = str(heard.data.get("agent_id"))
    heard.note("agent-stop", agent=agent, agent_type=REVIEWER, message=message)
    return None


def stop(heard: Heard) -> dict[str, Any] | None:
    """Once a turn, have the model say which gates are open; never while the reviewer works."""
    if not heard.held or heard.data.get("stop_hook_active") or _reviewer_works(heard):
        return None
    said = str(heard.data.get("last_assistant_message") or "")
    silent = [session for session in heard.held if not _names_open(session, said)]
    if not silent:
        return None
    lines = [
        f"session {session.session} of job {session.job} has {_gates(session.next)} open; next is "
        f"step {session.next}, {TASKS[session.next - 1]}: `{session.command}`"
        for session in silent
    ]
    return {
        "decision": "block",
        "reason": (
            "trainwarden: " + "; ".join(lines) + ". Go on with it, or, if you must wait for the "
            "user, end your turn by saying which gates are open and what you need. The user can "
            "stop you at any time; `trainwarden abandon --why '…'` gives the watch up."
        ),
    }


def _names_open(session: record.Open, said: str) -> bool:
    """Whether a message names the next gate or the command that seals it."""
    words = session.command.split()
    command = " ".join(words[:2])
    number = rf"(?i)\b(?:gates?|steps?)\s*{session.next}\b"
    return (bool(command) and command in said) or bool(re.search(number, said))


def _reviewer_works(heard: Heard) -> bool:
    """Whether a reviewer is at work, as the client says it, else as the record does."""
    running = heard.data.get("background_tasks")
    if isinstance(running, list):
        return any(
            isinstance(task, dict)
            and task.get("agent_type") == REVIEWER
            and task.get("status") == "running"
            for task in running
        )
    at_work: set[Any] = set()
    for event in record.events(heard.project, heard.client):
        if event["event"] == "agent-start":
            at_work.add(event.get("agent"))
        elif event["event"] == "agent-stop":
            at_work.discard(event.get("agent"))
    return bool(at_work)


HANDLERS = {
    "SessionStart": session_start,
    "UserPromptSubmit": prompt,
    "PostToolUse": skill,
    "TaskCompleted": task_completed,
    "SubagentStart": agent_start,
    "SubagentStop": agent_stop,
    "Stop": stop,
}
