"""One event of the client: heard, judged, recorded, answered.

Where something fails inside, a call before gate 1 is refused and any other passes; the failure is
recorded, so that no gate claims to have been guarded.
"""

from __future__ import annotations

import os
import sys

from trainwarden.guard import record
from trainwarden.guard.plainjson import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SECONDS = 5.0
"""After that long a hang is a failure; the client itself waits twice as long."""
OPENING = ("begin", "resume", "run", "doctor")
"""What is vouched for with no session open: gate 1 asks for it, and `doctor` to know the guard."""
PLUGIN = __file__.rsplit("/", 4)[0]
NESTED = "trainwarden: the input of this call is nested too deep to be judged: make it plainer."
JUDGED = b'"hook_event_name":"PreToolUse"'
"""As the client writes it; within a call's own text the quotes would be escaped."""


class Hang(BaseException):
    """The time is up. No Exception, so that nothing on the way takes it for its own."""


class Call:
    """A tool call that is to be judged, as far as it is known."""

    def __init__(self, project: str, client: str) -> None:
        self.project = project
        self.client = client
        self.data: dict[str, Any] = {}
        self.held: list[record.Open] | None = None
        self.open_in_all = 0
        self.refused: str | None = None

    def note(self, event: str, **fields: Any) -> None:
        """Add to the client's record."""
        record.append(self.project, self.client, event, **fields)


def main() -> int:
    """Hear one event from standard input; the exit status, with the answer printed."""
    project = os.environ.get("CLAUDE_PROJECT_DIR") or os.getcwd()
    call = Call(project, os.environ.get("CLAUDE_CODE_SESSION_ID", ""))
    judged = True
    try:
        limit(SECONDS)
        raw = sys.stdin.buffer.read()
        if JUDGED in raw and b"trainwarden" not in raw and not record.open_names(project):
            return 0
        try:
            data = loads(raw.decode("utf-8", "replace"))
        except RecursionError:  # the model's own doing, and no failure that would let it pass
            if JUDGED in raw and record.open_sessions(project, call.client)[1]:
                return say(denial(NESTED))
            raise
        judged = data.get("hook_event_name") == "PreToolUse"
        call.data, call.client = data, str(data.get("session_id") or call.client)
        if judged:
            return say(denial(judge(call)))
        from trainwarden.guard.events import answer

        heard = answer(call.data, project, call.client, PLUGIN)
        if isinstance(heard, str):
            sys.stderr.write(heard + "\n")
            return 2
        return say(heard)
    except BaseException as error:
        return failed(call, error, judged)


def judge(call: Call) -> str | None:
    """Why a tool call is refused, or nothing; the record has it before the client hears it."""
    call.held, call.open_in_all = record.open_sessions(call.project, call.client)
    use = str(call.data.get("tool_use_id", ""))
    if not call.open_in_all:
        if call.data.get("tool_name") == "Bash":
            ticket(call, use, OPENING)
        return None
    unwritten: OSError | None = None
    try:
        if call.held:
            call.note("began", tool_use=use)
    except OSError as error:  # judged all the same: a full disk is no leave to kill a run
        unwritten = error
    from trainwarden.guard.tools import refusal

    why = call.refused = refusal(call.data, call.held, call.open_in_all, call.project, PLUGIN)
    if unwritten:
        raise unwritten
    if why:
        call.note("refused", tool_use=use, tool=str(call.data.get("tool_name")), why=why)
    else:
        passed(call, use)
    if call.held:
        call.note("ended", tool_use=use)
    return why


def passed(call: Call, use: str) -> None:
    """Record what the runtime relies on of a call that passes."""
    from trainwarden.guard.tools import READING, REVIEWER

    if not call.held:
        if call.data.get("tool_name") == "Bash":
            ticket(call, use, OPENING)
        return
    if call.data.get("agent_type") == REVIEWER and call.data.get("tool_name") in READING:
        asked = call.data.get("tool_input") or {}
        about = next(
            (asked[name] for name in ("command", "file_path", "path") if name in asked), ""
        )
        tool = str(call.data.get("tool_name"))
        call.note("agent-call", agent=str(call.data.get("agent_id")), tool=tool, about=str(about))
    if call.data.get("tool_name") == "Bash":
        ticket(call, use, ())


def ticket(call: Call, use: str, only: tuple[str, ...]) -> None:
    """Vouch for the runtime's commands in a Bash call; with `only`, where one of those is there."""
    from trainwarden.guard.tools import runtime_calls

    commands = runtime_calls(str((call.data.get("tool_input") or {}).get("command", ""))) or []
    asked = {subcommand(words) for words in commands}
    if not commands or (only and not asked.intersection(only)):
        return
    if "predict" in asked and call.held:
        look_back(call)
    call.note(
        "call",
        tool_use=use,
        agent=str(call.data.get("agent_id") or ""),
        agent_type=str(call.data.get("agent_type") or ""),
        commands=commands,
    )


def subcommand(words: list[str]) -> str:
    """Which of the runtime's commands a call asks for."""
    return next((word for word in words[1:] if not word.startswith("-")), "")


def look_back(call: Call) -> None:
    """Before gate 1: note evidence that reached the context before or beside the guard.

    A failure here is recorded and the call goes on: gate 1 will not say that it was guarded.
    """
    try:
        from trainwarden.guard.transcript import exposures, unjudged

        for session in call.held or []:
            if session.next == 1:
                passed_by = unjudged(session, call.data, call.client)
                if passed_by:
                    why = f"it did not run for {len(passed_by)} calls: {', '.join(passed_by[:9])}"
                    call.note("failed", where="before gate 1", why=why)
                for what in exposures(session, call.data, call.client):
                    call.note("seen", what=what, session=session.session)
    except BaseException as error:
        limit(SECONDS / 2)
        call.note("failed", where="looking back before gate 1", why=described(error))


def denial(why: str | None) -> dict[str, Any] | None:
    """The client's form of a refusal."""
    if why is None:
        return None
    decision = {"permissionDecision": "deny", "permissionDecisionReason": why}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}}


def say(answer: dict[str, Any] | None) -> int:
    """Print an answer, if there is one."""
    if answer is not None:
        sys.stdout.write(dumps(answer) + "\n")
    return 0


def failed(call: Call, error: BaseException, judged: bool) -> int:
    """The guard failed inside: refuse a call before gate 1, let all else pass, record it."""
    why = described(error)
    try:
        limit(SECONDS / 4)
        early = judged and before_gate_1(call) and not way_out(call.data)
    except BaseException:  # not even whether a session is open can be known
        early = False
    try:
        remember(call, why)
    except BaseException:
        why += "; it could not be recorded"
    if call.refused:
        return say(denial(call.refused))
    return say(denial(unjudged(why) if early else None))


def unjudged(why: str) -> str:
    """What a call before gate 1 is told where the guard failed."""
    return (
        f"trainwarden: its guard failed ({why}), and before gate 1 no call passes unjudged. Try "
        "once more. If it stays, `trainwarden doctor` looks for the cause and `trainwarden abandon "
        "--why '<plain words>'` ends the session; the user can run both in a terminal as well."
    )


def before_gate_1(call: Call) -> bool:
    """Whether the client holds a session whose gate 1 is open, or one that cannot be read."""
    if call.held is None:
        start = record.plain(call.client) + "."
        own = [name for name in record.open_names(call.project) if name.startswith(start)]
        try:
            call.held = [
                session
                for session in (record.opened(call.project, n) for n in own)
                if session is not None
            ]
        except BaseException:
            return True
    return not all(isinstance(one.next, int) and one.next > 1 for one in call.held)


def way_out(data: dict[str, Any]) -> bool:
    """Whether a call is one plain command that helps to get out of a failing guard."""
    asked = data.get("tool_input") if isinstance(data, dict) else None
    command = asked.get("command") if isinstance(asked, dict) else None
    if not isinstance(command, str) or data.get("tool_name") != "Bash":
        return False
    words = command.split()
    plain = not any(sign in command.strip() for sign in "`$;|&<>(){}[]*?~#!\\\n\r")
    return plain and words[:1] == ["trainwarden"] and words[1:2] in (["abandon"], ["doctor"])


def remember(call: Call, why: str) -> None:
    """Record a failure where the runtime reads it, else in the plugin's own folder."""
    where = str(call.data.get("hook_event_name", "reading the event"))
    try:
        if os.path.isdir(record.folder(call.project)):
            call.note("failed", where=where, why=why)
    except OSError as error:
        data = os.environ["CLAUDE_PLUGIN_DATA"]
        with open(os.path.join(data, "guard-failures.jsonl"), "a", encoding="utf-8") as file:
            lost = {"project": call.project, "client": call.client, "unwritten": described(error)}
            file.write(dumps({"where": where, "why": why, **lost}) + "\n")
        raise


def described(error: BaseException) -> str:
    """An error in a few words."""
    if isinstance(error, Hang):
        return "it hung"
    return f"{type(error).__name__}: {error}"[:500]


def limit(seconds: float) -> None:
    """Raise Hang after that long; 0 lifts it."""
    try:
        from _signal import (  # type: ignore[import-not-found]  # `signal` costs half a start
            ITIMER_REAL,
            SIGALRM,
            setitimer,
            signal,
        )
    except ImportError:  # a system without alarms: the client's own limit holds
        return

    def expired(*_: Any) -> None:
        raise Hang

    signal(SIGALRM, expired)
    setitimer(ITIMER_REAL, seconds)
