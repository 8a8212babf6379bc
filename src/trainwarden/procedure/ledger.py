"""The sealed gates of a session on disk: what is sealed, what comes next, and sealing itself."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from trainwarden.errors import Refusal, Trouble
from trainwarden.evidence.base import utc_now
from trainwarden.files import write_atomically
from trainwarden.procedure import gates, holding
from trainwarden.procedure.seals import gate_file, genesis, seal
from trainwarden.procedure.state import StateStore
from trainwarden.procedure.witness import Witness
from trainwarden.records.job import Job
from trainwarden.records.session import STEPS, Gate, SessionHeader, SessionRecord
from trainwarden.records.state import JobState


def next_step(record: SessionRecord) -> tuple[int, int]:
    """Which step is to be sealed now, in which revision; step 10 when the session is done."""
    if not record.gates:
        return 1, 1
    last = record.gates[-1]
    if last.name == "review" and last.content["outcome"] == "rejected":
        return 2, last.revision + 1
    revision = last.revision if 2 <= last.step < 6 else 1
    return last.step + 1, revision


class Ledger:
    """A session's record and its chain. The job must be held (`StateStore.hold`) while sealing."""

    def __init__(
        self,
        store: StateStore,
        folder: Path,
        record: SessionRecord,
        clock: Callable[[], datetime] = utc_now,
        live: bool = True,
    ) -> None:
        self.store = store
        self.folder = folder
        self.record = record
        self.clock = clock
        self.live = live
        self.witness: Witness | None = None
        """The guard's record of the client that runs the present command."""

    @property
    def header(self) -> SessionHeader:
        """What was fixed when it began."""
        return self.record.header

    @property
    def job(self) -> Job:
        """The job it watches."""
        return self.record.header.job

    @property
    def head(self) -> str:
        """The last seal."""
        return self.record.gates[-1].seal if self.record.gates else genesis(self.header)

    @property
    def in_client(self) -> bool:
        """Whether the session was opened in Claude Code, or is gone on with there."""
        present = self.witness is not None and self.witness.client is not None
        return present or self.header.client is not None

    def latest(self, name: str) -> Gate | None:
        """The newest revision of a gate."""
        return next((gate for gate in reversed(self.record.gates) if gate.name == name), None)

    def content(self, name: str) -> dict[str, Any]:
        """The content of the newest revision. Raises Refusal where it is not sealed."""
        gate = self.latest(name)
        if gate is None:
            raise Refusal(
                f"step {STEPS.index(name) + 1} ({name}) is not sealed. {self.next_line()}"
            )
        return gate.content

    def next_line(self) -> str:
        """What comes next, as the commands say it."""
        step, revision = next_step(self.record)
        if step > len(STEPS):
            return "All nine steps are sealed."
        again = f", revision {revision}" if revision > 1 else ""
        name = STEPS[step - 1]
        return f"Next: step {step} of 9{again}: trainwarden {gates.COMMANDS[name]}"

    def steps(self) -> list[dict[str, Any]]:
        """The nine steps as a list of tasks: which are done, and whether the guard vouches."""
        following, revision = next_step(self.record)
        listed = []
        for number, task in enumerate(gates.TASKS, 1):
            gate = self.latest(STEPS[number - 1])
            again = revision if 2 <= following <= number <= 6 else 1
            listed.append(
                {
                    "task": task,
                    "done": number < following,
                    "revision": max(again, gate.revision if gate else 1),
                    "skipped": bool(gate and gate.skipped),
                    "guarded": gate.guarded if gate else None,
                }
            )
        return listed

    def expect(self, name: str) -> None:
        """Raises Refusal where another step comes next."""
        step, _ = next_step(self.record)
        wanted = STEPS.index(name) + 1
        if step == wanted:
            return
        if name == "predict" and step > 1:
            raise Refusal(f"a sealed prediction is never revised. {self.next_line()}")
        if wanted == 2 and step == 1:
            raise Refusal(
                "no evidence is read before gate 1 is sealed: predict first. " + self.next_line()
            )
        did = "is already sealed" if wanted < step else "cannot be sealed yet"
        raise Refusal(f"step {wanted} ({name}) {did}. {self.next_line()}")

    def _refuse(self, command: str, complaints: Sequence[str]) -> None:
        if complaints:
            listed = "\n".join(f"- {complaint}" for complaint in dict.fromkeys(complaints))
            raise Refusal(f"{command}: not sealed, because\n{listed}\nMend this and send it again.")

    def _seal(
        self, name: str, content: dict[str, Any], *, skipped: bool = False, **extra: Any
    ) -> Gate:
        step, revision = next_step(self.record)
        guarded, unguarded = self._vouched()
        gate = Gate(
            step=step,
            name=name,
            revision=revision,
            file=gates.file_name(step, revision),
            job=self.job.id,
            session=self.header.session,
            analyst=self.header.analyst,
            sealed_at=self.clock(),
            skipped=skipped,
            guarded=guarded,
            unguarded=unguarded,
            content=content,
            previous=self.head,
            seal="",
        )
        after = SessionRecord(header=self.header, gates=(*self.record.gates, gate))
        following = Ledger(self.store, self.folder, after).next_line()
        body = gates.render(gate, self.header, following, **extra)
        gate = gate.model_copy(update={"seal": seal(gate, body)})
        # The file first: a gate counts as sealed only once session.json has it.
        write_atomically(self.folder / gate.file, gate_file(gate, body))
        before, self.record = (
            self.record,
            SessionRecord(header=self.header, gates=(*self.record.gates, gate)),
        )
        try:
            self._write_record()
        except Trouble:
            self.record = before
            raise
        if self.witness is not None:
            self.witness.sealed(gate)
        if name != "summary":
            self._remember_head()
            # What is sealed is sealed; where the guard's file lags behind, it is put right later.
            with contextlib.suppress(Trouble):
                self.say_open()
        return gate

    def _vouched(self) -> tuple[bool | None, str]:
        if not self.in_client:
            return None, ""
        witness = self.witness or Witness(self.store.logs.parent, None)
        objection = witness.objection(self.header.session)
        return not objection, objection

    def say_open(self, client: str | None = None) -> None:
        """Tell the guard what is open and next; a replay's sessions are nobody's."""
        step, revision = next_step(self.record)
        if self.live and step <= len(STEPS):
            holding.write(self.store.logs.parent, self.header, step, revision, client)

    def _write_record(self) -> None:
        text = json.dumps(self.record.model_dump(mode="json"), indent=1, ensure_ascii=False)
        write_atomically(self.folder / "session.json", text + "\n")

    def _remember_head(self) -> None:
        def remember(state: JobState) -> None:
            current = state.monitor.open_session
            if current is not None and current.session == self.header.session:
                current.head = self.head

        self.store.update(self.job, self.clock(), remember, "monitor")
