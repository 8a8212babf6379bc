"""What the guard's record says for a command that runs in Claude Code.

The guard writes each call that it passed as a ticket; the command that it passed for takes the
ticket, and only what had one can be vouched for. The runtime adds to the record where a session
was opened and where each gate was sealed, so that what lies between is told by the order of lines.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainwarden.guard import record
from trainwarden.procedure import holding
from trainwarden.procedure.client import Client
from trainwarden.records.hostile import clean
from trainwarden.records.session import Gate

REVIEWER = "quality-reviewer"
AGENT = f"trainwarden:{REVIEWER}"
STILL_JUDGING = 3.0
"""Seconds for which a call that began to be judged is taken to be under judgement."""
MOST_SEEN = 40

Event = dict[str, Any]


@dataclass(frozen=True)
class Heard:
    """A reviewer that the guard saw start after the last gate 5 and stop."""

    agent: str
    message: str
    read: bool
    """Whether it had read anything by then."""

    @property
    def name(self) -> str:
        """As gate 6 names it."""
        kept = "".join(sign for sign in self.agent if sign.isascii() and sign.isalnum())
        return f"{REVIEWER} {kept[:40]}".strip()


@dataclass
class Witness:
    """The guard's record of the client that runs a command; none where no client runs it."""

    root: Path
    client: Client | None
    ticket: str = ""
    """The call that the guard passed and that this command answers; empty where there is none."""
    told: bool = True
    """Whether the guard knew of the session, as held by this client, when the command began."""
    _events: list[Event] = field(default_factory=list, repr=False)

    @classmethod
    def of(cls, root: Path, client: Client | None, command: str) -> Witness:
        """Take the ticket of a command, if there is one, and say so in the record."""
        witness = cls(root, client)
        witness._read()
        ticket = _ticket(witness._events, command)
        if ticket and witness._append("used", tool_use=ticket, command=command):
            witness.ticket = ticket
        return witness

    @property
    def live(self) -> bool:
        """Whether the guard saw this command's own call."""
        return bool(self.ticket)

    def meet(self, session: str) -> None:
        """Look whether the guard was told of a session before this command went on with it."""
        held = holding.holder(self.root, session)
        self.told = self.client is not None and held == holding.name_of(self.client)

    def opened(self, session: str) -> None:
        """Note that the session is this client's from here on."""
        self._append("opened", session=session, tool_use=self.ticket)

    def sealed(self, gate: Gate) -> None:
        """Note that a gate was sealed."""
        self._append("sealed", session=gate.session, step=gate.step, revision=gate.revision)

    def objection(self, session: str) -> str:
        """Why the guard does not vouch for the gate to be sealed now; empty where it does."""
        if self.client is None:
            return "sealed outside of Claude Code, in which the session was opened"
        if not self.client.session:
            return "the client does not tell which session it is"
        watched = self.client.project
        if watched is not None and watched.resolve() != self.root.resolve():
            return f"the guard watches {watched}, not {self.root}"
        if not self.live:
            return "the guard saw no call of this command: `trainwarden doctor` finds out why"
        if not self.told:
            return "the guard had not been told that this client holds the session"
        since = self._since(session)
        if not since:
            return "the guard's record does not have the beginning of the session"
        for event in since:
            if event["event"] == "opened" and event.get("session") == session:
                if not event.get("tool_use"):
                    return "the guard did not see how the session was opened"
                if event["tool_use"] == self.ticket:
                    return (
                        "sealed in the call that opened the session, before the guard could look "
                        "at what had been seen"
                    )
            if event["event"] == "failed":
                where, why = (clean(str(event.get(key, "")), 200) for key in ("where", "why"))
                return f"the guard failed: {where}: {why}"
        if _hung(since):
            return "the guard did not finish judging a call, which may have passed unjudged"
        return ""

    def seen(self, session: str) -> list[str]:
        """Evidence that had reached the context by now, as the guard noted it."""
        texts = (
            clean(str(event.get("what", "")), 300)
            for event in self._read()
            if event["event"] == "seen" and event.get("session", session) == session
        )
        return [text for text in dict.fromkeys(texts) if text][:MOST_SEEN]

    def collected(self) -> list[str]:
        """The sessions whose evidence was collected by this client."""
        found = [e for e in self._read() if e["event"] == "sealed" and e.get("step") == 2]
        return list(dict.fromkeys(str(event.get("session")) for event in found))

    def skills(self) -> list[str]:
        """The skills that the client really loaded, without the plugin's name."""
        names = (str(e.get("name", "")) for e in self._read() if e["event"] == "skill")
        return list(dict.fromkeys(clean(n.removeprefix("trainwarden:"), 80) for n in names))

    def reviewers(self, session: str) -> tuple[list[Heard], bool]:
        """Reviewers that started after the newest gate 5 and stopped, in order of their stops.

        And whether one of them is at work now.
        """
        events = self._read()
        fifth = [
            place
            for place, event in enumerate(events)
            if event["event"] == "sealed" and event.get("session") == session
            if event.get("step") == 5
        ]
        heard: list[Heard] = []
        started: set[str] = set()
        read: set[str] = set()
        working: set[str] = set()
        for event in events[fifth[-1] :] if fifth else ():
            agent, kind = str(event.get("agent", "")), event["event"]
            if kind == "agent-start" and event.get("agent_type") == AGENT and agent:
                started.add(agent)
            elif kind == "agent-call":
                read.add(agent)
            if kind == "agent-stop" and agent in started:
                heard.append(Heard(agent, str(event.get("message") or ""), agent in read))
                working.discard(agent)
            elif kind in ("agent-start", "agent-call") and agent in started:
                working.add(agent)
        return heard, bool(working)

    def _read(self) -> list[Event]:
        if self.client is not None and self.client.session:
            with contextlib.suppress(OSError):
                self._events = record.events(str(self.root), self.client.session)
        return self._events

    def _append(self, event: str, **fields: Any) -> bool:
        if self.client is None or not self.client.session:
            return False
        # Where nothing has been seen there is no guard, and nothing to tell it.
        if not Path(record.seen_path(str(self.root), self.client.session)).exists():
            return False
        try:
            record.append(str(self.root), self.client.session, event, **fields)
        except OSError:
            return False
        return True

    def _since(self, session: str) -> list[Event]:
        """From the session's last gate, or else from where it was first opened here, to now.

        Opening it once more forgets nothing. Waits for a judgement under way.
        """
        deadline = time.monotonic() + STILL_JUDGING
        while True:
            events = self._read()
            marks = {"opened": len(events), "sealed": -1}
            for place, event in enumerate(events):
                if event.get("session") != session:
                    continue
                if event["event"] == "opened":
                    marks["opened"] = min(place, marks["opened"])
                elif event["event"] == "sealed":
                    marks["sealed"] = place
            since = events[marks["sealed"] if marks["sealed"] >= 0 else marks["opened"] :]
            if not _hung(since) or time.monotonic() > deadline:
                return since
            time.sleep(0.05)


def _ticket(events: Sequence[Event], command: str) -> str:
    """The newest call with this command in it that was not yet answered.

    A call that a later one's answer has overtaken was never run, and is no ticket any more.
    """
    used: dict[str, list[str]] = {}
    for event in events:
        if event["event"] == "used":
            used.setdefault(str(event.get("tool_use")), []).append(str(event.get("command")))
    for event in reversed(events):
        if event["event"] != "call" or not event.get("tool_use"):
            continue
        name = str(event["tool_use"])
        answered = used.get(name, [])
        commands = event.get("commands")
        asked = [_subcommand(argv) for argv in commands] if isinstance(commands, list) else []
        if asked.count(command) > answered.count(command):
            return name
        if answered:
            break
    return ""


def _subcommand(argv: Any) -> str:
    """`review` for what gives a verdict; a call that only shows the material is another thing."""
    words = [str(word) for word in argv[1:]] if isinstance(argv, (list, tuple)) else []
    named = next((word for word in words if not word.startswith("-")), "")
    return f"{named} --material" if "--material" in words else named


def _hung(events: Sequence[Event]) -> bool:
    ended = {event.get("tool_use") for event in events if event["event"] == "ended"}
    return any(e["event"] == "began" and e.get("tool_use") not in ended for e in events)
