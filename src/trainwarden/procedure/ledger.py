"""The sealed gates of a session on disk: what is sealed, what comes next, and sealing itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from trainwarden.errors import Refusal, Trouble
from trainwarden.evidence.base import utc_now
from trainwarden.files import write_atomically
from trainwarden.procedure import gates
from trainwarden.procedure.seals import gate_file, genesis, seal
from trainwarden.procedure.state import StateStore
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

    def _expect(self, name: str) -> None:
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
        if name != "summary":
            self._remember_head()
        return gate

    def _write_record(self) -> None:
        text = json.dumps(self.record.model_dump(mode="json"), indent=1, ensure_ascii=False)
        write_atomically(self.folder / "session.json", text + "\n")

    def _remember_head(self) -> None:
        def remember(state: JobState) -> None:
            current = state.monitor.open_session
            if current is not None and current.session == self.header.session:
                current.head = self.head

        self.store.update(self.job, self.clock(), remember, "monitor")
