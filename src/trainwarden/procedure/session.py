"""A session: the nine steps in order, each sealed before the next may begin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from trainwarden.errors import Refusal
from trainwarden.evidence.base import Source, utc_now
from trainwarden.files import make_folder
from trainwarden.procedure import auditing, domains, duties, foresight, holding, machine, planning
from trainwarden.procedure.aside import TakeOver, collected_before, settle_open
from trainwarden.procedure.beginning import (
    due_hypotheses,
    new_folder,
    read_facts,
)
from trainwarden.procedure.casefile import CaseFile
from trainwarden.procedure.compare import calibrate, compare
from trainwarden.procedure.criteria import derive
from trainwarden.procedure.grounding import Citable
from trainwarden.procedure.ledger import next_step
from trainwarden.procedure.outlook import how_far, last_value
from trainwarden.procedure.seals import genesis, load_session
from trainwarden.procedure.settling import keep_learnings, known_learnings, settlement
from trainwarden.procedure.state import StateStore
from trainwarden.procedure.witness import Witness
from trainwarden.procedure.wording import substance
from trainwarden.records.assessment import Assessment, Troubleshooting
from trainwarden.records.hypothesis import Strategy
from trainwarden.records.job import Job
from trainwarden.records.prediction import Prediction
from trainwarden.records.review import Review
from trainwarden.records.session import STEPS, Authority, Gate, SessionHeader, SessionRecord
from trainwarden.records.state import JobState, OpenSession

REVIEW_ROUNDS = 2


def _dump(records: Iterable[Any]) -> list[dict[str, Any]]:
    return [record.model_dump(mode="json") for record in records]


class Session(CaseFile):
    """One monitoring pass over one job. The job must be held (`StateStore.hold`) while sealing."""

    @classmethod
    def begin(
        cls,
        store: StateStore,
        job: Job,
        *,
        analyst: str,
        authority: Authority = "observe",
        clock: Callable[[], datetime] = utc_now,
        live: bool = True,
        take_over: TakeOver = "no",
        witness: Witness | None = None,
    ) -> Session:
        """Open a session on a job, held by the client that the witness speaks of.

        Raises Refusal where another session of the job is open, unless `take_over` sets that one
        aside (`own`: only one of the same analyst); Trouble where nothing can be written.
        """
        if not auditing.is_plain_name(analyst):
            raise Refusal("--analyst: a name of plain letters, digits and . _ - / @ (at most 80)")
        make_folder(store.jobs)
        state, note = store.load(job.id)
        notes = [note] if note else []
        now = clock()
        if state is not None:
            state, more = settle_open(
                store, job, state, analyst, take_over, now,
                lambda folder: cls.resume(store, folder)._settle(now),
            )  # fmt: skip
            notes += more
            if now < state.meta.last_updated - timedelta(seconds=1):
                behind = (state.meta.last_updated - now).total_seconds()
                notes.append(
                    f"the clock is {behind:.0f} s behind this job's last update: it was set back, "
                    "so times of earlier sessions are not compared with this one's"
                )
        facts, problem = read_facts(job)
        notes += [problem] if problem else []
        folder, moment = new_folder(store.logs, now)
        client = witness.client if witness else None
        header = SessionHeader(
            session=folder.name,
            number=(state.meta.session_count if state else 0) + 1,
            job=job,
            analyst=analyst,
            client=client.session if client else None,
            authority=authority,
            begun_at=moment,
            criteria=derive(job, facts, state),
            due=tuple(h.id for h in due_hypotheses(state, now)),
            learnings=(*known_learnings(store), *(state.monitor.learnings if state else ())),
            notes=tuple(notes),
        )
        session = cls(store, folder, SessionRecord(header=header), clock, live)
        session.witness = witness
        session._write_record()
        # Before the state: a kill in between leaves the guard too strict, never blind.
        session.say_open(holding.name_of(client))
        if witness:
            witness.opened(folder.name)

        def opened(state: JobState) -> None:
            state.meta.config = job.config or state.meta.config
            state.meta.model = job.model or state.meta.model
            state.meta.logs = list(job.logs)
            state.meta.session_count = header.number
            if job.guidance and job.guidance not in state.monitor.user_guidance:
                state.monitor.user_guidance.append(job.guidance)
            state.monitor.criteria = list(header.criteria)
            state.monitor.open_session = OpenSession(
                session=folder.name, begun=moment, head=genesis(header)
            )

        store.update(job, now, opened, "meta", "monitor")
        return session

    @classmethod
    def resume(
        cls, store: StateStore, folder: Path, clock: Callable[[], datetime] = utc_now
    ) -> Session:
        """A session as it stands on disk. Raises Refusal where there is none."""
        return cls(store, folder, load_session(folder), clock)

    # The nine steps

    def predict(self, predictions: Sequence[Prediction]) -> Gate:
        """Step 1. Raises Refusal where something that must be predicted is missing."""
        self.expect("predict")
        self._refuse("predict", foresight.prediction_complaints(predictions, self.header.criteria))
        numbered = [
            prediction.model_copy(update={"id": f"P{number}"})
            for number, prediction in enumerate(predictions, 1)
        ]
        content: dict[str, Any] = {"predictions": _dump(numbered)}
        if self.in_client and self.witness:
            content["seen_before"] = [
                *self.witness.seen(self.header.session),
                *collected_before(self.store, self.job, self.witness.collected()),
            ]
        return self._seal("predict", content)

    def collect(self, sources: Sequence[Source] | None = None) -> Gate:
        """Step 2: read all sources in parallel; what cannot be read is said."""
        self.expect("collect")
        from trainwarden.diagnosis.derived import derived_observations
        from trainwarden.evidence.collect import collect, sample_row
        from trainwarden.evidence.disagree import disagreements
        from trainwarden.evidence.log_readings import positions
        from trainwarden.evidence.sources import builtin_sources

        target = self.target()
        reports = collect(target, builtin_sources() if sources is None else sources)
        self._readings = tuple(target.readings.values())
        first = 1 + sum(
            len(gate.content["observations"])
            for gate in self.record.gates
            if gate.name == "collect"
        )
        seen = [item for report in reports for item in report.observations]
        seen += [machine.unread(report) for report in reports if report.status != "ok"]
        seen += derived_observations(self._readings, seen, self.indicator())
        observations = [
            item.model_copy(update={"id": f"E{number}"}) for number, item in enumerate(seen, first)
        ]
        listed = [
            report.model_dump(mode="json", exclude={"observations"})
            | {"trust": report.trust.name.lower(), "count": len(report.observations)}
            for report in reports
        ]
        content = {
            "reports": listed,
            "observations": _dump(observations),
            "disagreements": _dump(disagreements(observations)),
            "sample": sample_row(reports, self.clock()) | {"log": next(iter(self.job.logs), None)},
            "positions": positions(self.store.readings, self.job),
        }
        return self._seal("collect", content)

    def compare(self, explanations: Mapping[str, str] | None = None) -> Gate:
        """Step 3: the runtime holds each prediction against what was seen, and diagnoses."""
        self.expect("compare")
        explanations = dict(explanations or {})
        predictions, observations = self.predictions, self.observations
        comparisons = compare(predictions, observations.values())
        known = {prediction.id for prediction in predictions}
        problems = [
            f"explanations: {name} is no prediction" for name in explanations if name not in known
        ]
        citable = Citable(observations.values(), self.header.criteria, predictions, comparisons)
        for name, text in explanations.items():
            problems += citable.complaints(f"explanation of {name}", text)
        self._refuse("compare", problems)
        earlier = self.state.monitor.calibration if self.state else {}
        outcomes = [comparison.outcome for comparison in comparisons]
        content = {
            "comparisons": _dump(comparisons),
            "observed": len(observations),
            "held": outcomes.count("held"),
            "missed": outcomes.count("missed"),
            "unobserved": outcomes.count("unobserved"),
            "explanations": explanations,
            "calibration": {
                name: count.model_dump(mode="json")
                for name, count in calibrate(earlier, predictions, comparisons).items()
            },
            "findings": _dump(self.diagnose(comparisons)),
        }
        return self._seal("compare", content, predictions={p["id"]: p for p in _dump(predictions)})

    def assess(self, assessment: Assessment) -> Gate:
        """Step 4. Raises Refusal where a status fails its duties or a number has no source."""
        self.expect("metrics")
        observations, findings = self.observations, self.findings
        complaints = duties.assessment_complaints(
            assessment,
            observations,
            self.header.criteria,
            self.predictions,
            self.comparisons,
            findings,
            self.indicator(),
            self.deferred,
        )
        skills = self._skills()
        if self.witness and self.witness.live:
            complaints += domains.complaints(self.demands(), skills["skills"]["loaded"])
        self._refuse("assess", complaints)
        named = [
            *assessment.progress,
            *assessment.failure,
            *self.citable.cited(assessment.reasoning),
        ]
        cited = [observations[name] for name in dict.fromkeys(named) if name in observations]
        content = {
            "assessment": assessment.model_dump(mode="json"),
            "findings": _dump(findings),
            "cited": _dump(cited),
            **skills,
        }
        return self._seal("metrics", content)

    def _skills(self) -> dict[str, Any]:
        """The domain skills demanded and loaded; nothing outside of Claude Code."""
        if not self.in_client:
            return {}
        demanded = [demand._asdict() for demand in self.demands()]
        loaded = self.witness.skills() if self.witness else []
        return {"skills": {"demanded": demanded, "loaded": loaded}}

    def resources(self, reasoning: str) -> Gate:
        """Step 5: every device, and what else the machine tells. Raises Refusal."""
        self.expect("resources")
        problems = self.citable.complaints("reasoning", reasoning)
        if substance("reasoning", reasoning):
            problems.append(
                "reasoning: say in sentences what the hardware, processes and disks tell"
            )
        self._refuse("resources", problems)
        content = machine.content(self.content("collect"), reasoning)
        return self._seal("resources", content)

    def reviewed_seals(self) -> dict[str, str]:
        """The seals a verdict must name: the newest revisions of gates 1 to 5."""
        return {name: gate.seal for name in STEPS[:5] if (gate := self.latest(name))}

    def load_bearing(self) -> list[str]:
        """Ids of the observations that the verdict rests on."""
        assessment = self.assessment
        named = [*assessment.progress, *assessment.failure]
        named += [name for finding in self.findings for name in finding.observations]
        named += self.citable.cited(assessment.reasoning)
        return [name for name in dict.fromkeys(named) if name in self.observations]

    def full_seals(self, review: Review) -> Review:
        """A verdict with the seals that it names by their first digits written out."""
        seals = auditing.expand_seals(review.seals, self.reviewed_seals())
        return review.model_copy(update={"seals": seals})

    def refuse_review(self, review: Review) -> None:
        """Raises Refusal where a verdict cannot be sealed."""
        self.expect("review")
        complaints = auditing.review_complaints(
            review,
            self.header.analyst,
            self.reviewed_seals(),
            self.load_bearing(),
            self.observations,
        )
        self._refuse("review", complaints)

    def review(self, review: Review) -> Gate:
        """Step 6: the verdict of another. A rejection opens gates 2 to 5 once more."""
        self.expect("review")
        review = self.full_seals(review)
        self.refuse_review(review)
        round_number = next_step(self.record)[1]
        rejected = review.verdict == "reject"
        final = round_number >= REVIEW_ROUNDS
        outcome = ("unverified" if final else "rejected") if rejected else "approved"
        unverified = [*review.unverified, *(review.objections if outcome == "unverified" else ())]
        content = {
            "review": review.model_dump(mode="json"),
            "round": round_number,
            "outcome": outcome,
            "unverified": unverified,
        }
        return self._seal("review", content)

    def troubleshoot(self, report: Troubleshooting) -> Gate:
        """Step 7: root causes, or skipped where nothing asks for them. Raises Refusal."""
        self.expect("troubleshoot")
        complaints = duties.troubleshooting_complaints(
            report,
            self.assessment,
            self.citable,
            self.observations,
            self.findings,
            self.comparisons,
        )
        self._refuse("troubleshoot", complaints)
        content = {
            "status": self.assessment.status.value,
            "findings": _dump(self.findings),
            "report": report.model_dump(mode="json"),
        }
        return self._seal("troubleshoot", content, skipped=bool(report.skipped))

    def strategize(self, strategy: Strategy) -> Gate:
        """Step 8: due hypotheses scored, new ones, a plan and when to look. Raises Refusal."""
        self.expect("strategy")
        status = self.assessment.status
        complaints = planning.strategy_complaints(
            strategy,
            status,
            self.due,
            self.observations,
            self.clock(),
            self.citable,
            self.header.criteria,
        )
        self._refuse("strategize", complaints)
        numbered = tuple(
            hypothesis.model_copy(update={"id": f"H{self.header.number}-{number}"})
            for number, hypothesis in enumerate(strategy.hypotheses, 1)
        )
        place = planning.choice(strategy)
        chosen = None if place is None else numbered[place].id
        final = strategy.model_copy(update={"hypotheses": numbered, "chosen": chosen})
        content = {
            "status": status.value,
            "due": _dump(self.due),
            "strategy": final.model_dump(mode="json"),
        }
        return self._seal("strategy", content)

    def finish(self, summary: str = "") -> Gate:
        """Step 9: seal the summary and write the job's state. Raises Refusal or Trouble."""
        self.expect("summary")
        self._refuse("finish", self.citable.complaints("summary", summary) if summary else [])
        assessment, compared = self.assessment, self.content("compare")
        observations = self.observations
        reviewed = self.content("review")
        content = {
            "status": assessment.status.value,
            "indicator": assessment.indicator.model_dump(mode="json"),
            "value": last_value(observations.values(), assessment.indicator.quantity),
            **how_far(observations.values(), self.total_steps()),
            "predictions": {
                "made": len(compared["comparisons"]),
                "held": compared["held"],
                "missed": compared["missed"],
                "unobserved": compared["unobserved"],
            },
            "findings": [
                {
                    "kind": finding.kind,
                    "severity": finding.severity.value,
                    "role": finding.role.value,
                    "since_step": finding.since_step,
                    "summary": finding.summary,
                }
                for finding in self.findings
                if finding.id not in assessment.disputed
            ],
            "review": f"{reviewed['outcome']} by {reviewed['review']['reviewer']}",
            "question": assessment.question,
            "evaluate_after": self.content("strategy")["strategy"]["evaluate_after"],
            "summary": summary,
        }
        gate = self._seal("summary", content)
        self._settle(self.clock())
        return gate

    def _settle(self, now: datetime) -> JobState:
        """Write what the session adds to the job's state; doing it twice changes nothing."""
        keep_learnings(self.store, self.content("review")["review"]["learnings"])
        change = settlement(self.header, {gate.name: gate for gate in self.record.gates})
        state = self.store.update(self.job, now, change, "meta", "monitor", "strategy")
        holding.release(self.store.logs.parent, self.header.session)
        return state
