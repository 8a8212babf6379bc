"""What a session knows: its gates as records, its config, the job's state and readings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from trainwarden.evidence.base import Target
from trainwarden.metrics.reading import Reading, planned_length
from trainwarden.procedure import domains, whereabouts
from trainwarden.procedure.beginning import read_config, read_facts
from trainwarden.procedure.grounding import Citable
from trainwarden.procedure.ledger import Ledger
from trainwarden.procedure.roles import Briefing
from trainwarden.records.assessment import Assessment, KeyIndicator, Troubleshooting
from trainwarden.records.facts import TrainingFacts, planned_steps
from trainwarden.records.finding import Finding
from trainwarden.records.hypothesis import Hypothesis
from trainwarden.records.observation import Disagreement, Observation, SourceReport, Trust
from trainwarden.records.prediction import Comparison, Prediction
from trainwarden.records.review import Review
from trainwarden.records.state import JobState


class CaseFile(Ledger):
    """A session's gates as records, and what surrounds them."""

    _readings: tuple[Reading, ...] | None = None

    @cached_property
    def facts(self) -> TrainingFacts:
        """What the config says, as far as it can be read."""
        return read_facts(self.job)[0]

    @cached_property
    def state(self) -> JobState | None:
        """The job's state when this session first asked for it."""
        return self.store.load(self.job.id)[0]

    @property
    def predictions(self) -> tuple[Prediction, ...]:
        """Gate 1's."""
        items = self.content("predict")["predictions"]
        return tuple(Prediction.model_validate(item) for item in items)

    @property
    def observations(self) -> dict[str, Observation]:
        """Gate 2's, newest revision, by id."""
        items = (Observation.model_validate(o) for o in self.content("collect")["observations"])
        return {item.id: item for item in items}

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Gate 3's."""
        items = self.content("compare")["comparisons"]
        return tuple(Comparison.model_validate(item) for item in items)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the runtime's rules found, as sealed in gate 3."""
        return tuple(Finding.model_validate(f) for f in self.content("compare")["findings"])

    @property
    def assessment(self) -> Assessment:
        """Gate 4's."""
        return Assessment.model_validate(self.content("metrics")["assessment"])

    @property
    def due(self) -> tuple[Hypothesis, ...]:
        """The hypotheses that this session must score."""
        waiting = self.state.strategy.hypotheses if self.state else []
        return tuple(h for h in waiting if h.id in self.header.due)

    @property
    def deferred(self) -> int | None:
        """The step at which the last session's deferral of judgement ends, where it had one."""
        history = self.state.monitor.status_history if self.state else []
        return next((e.deferred_until for e in history if e.deferred_until is not None), None)

    @property
    def citable(self) -> Citable:
        """Everything that a text of this session may cite by now."""
        compared = self.latest("compare") is not None
        return Citable(
            self.observations.values() if self.latest("collect") else (),
            self.header.criteria,
            self.predictions if self.latest("predict") else (),
            self.comparisons if compared else (),
            self.findings if compared else (),
            self.due,
        )

    def demands(self) -> tuple[domains.Demand, ...]:
        """The domain skills that gate 4 asks for, told from the config and gate 2."""
        return domains.demanded(
            self.facts,
            read_config(self.job)[0],
            self.observations.values(),
            self.job.logs,
            trackers=whereabouts.trackers(self.job, self.facts.output_dir),
            in_pod=bool(os.environ.get("KUBERNETES_SERVICE_HOST")),
        )

    def readings(self) -> tuple[Reading, ...]:
        """The job's logs as last read, the main one first; from the reading cache."""
        if self._readings is None:
            from trainwarden.evidence.log_readings import load_readings

            logs = [Path(log) for log in self.job.logs]
            total = planned_steps(self.facts)
            self._readings = tuple(
                reading.stretched(self.facts.log_every, total)
                for reading in load_readings(self.store.readings, self.job, logs)
            )
        return self._readings

    def briefing(self) -> Briefing:
        """What an analyst may know now."""
        collected = self.latest("collect")
        compared = self.latest("compare")
        briefing = Briefing(
            header=self.header,
            facts=self.facts,
            now=self.clock(),
            state=self.state,
            due=self.due,
            past=self.readings() if collected is None else (),
            samples=self.samples,
        )
        if self.latest("predict"):
            briefing.predictions = self.predictions
        if collected is not None:
            briefing.reports = tuple(_report(item) for item in collected.content["reports"])
            briefing.observations = self.observations
            briefing.disagreements = tuple(
                Disagreement.model_validate(item) for item in collected.content["disagreements"]
            )
            briefing.readings = self.readings()
        if compared is not None:
            briefing.comparisons = self.comparisons
            briefing.findings = self.findings
        if self.latest("metrics"):
            briefing.assessment = self.assessment
        if review := self.latest("review"):
            briefing.review = Review.model_validate(review.content["review"])
        if troubleshooting := self.latest("troubleshoot"):
            report = troubleshooting.content["report"]
            briefing.troubleshooting = Troubleshooting.model_validate(report)
        return briefing

    @property
    def samples(self) -> tuple[Mapping[str, Any], ...]:
        """What earlier sessions left of this run: a config's earlier run logged elsewhere."""
        rows = self.state.monitor.samples if self.state else []
        return tuple(row for row in rows if row.get("log") in (None, *self.job.logs))

    def target(self) -> Target:
        """What the sources are pointed at."""
        raw, _ = read_config(self.job)
        return Target(
            job=self.job,
            root=self.store.logs.parent,
            config=raw,
            logs=tuple(Path(log) for log in self.job.logs),
            cache_dir=self.store.readings,
            earlier=self.samples,
            now=self.clock,
            live=self.live,
        )

    def indicator(self) -> KeyIndicator | None:
        """The key indicator as the runtime would choose it, None where nothing was logged."""
        from trainwarden.metrics.indicator import key_indicator

        series = {
            name: one
            for reading in reversed(self.readings())
            for name, one in reading.series.items()
        }
        if not series:
            return None
        choice = key_indicator(series, self.facts, self._guidance())
        return KeyIndicator(quantity=choice.quantity, direction=choice.direction, why=choice.why)

    def total_steps(self) -> int | None:
        """How long the run is to be, by its log or else by its config."""
        return planned_length(self.readings(), self.facts)

    def _guidance(self) -> str | None:
        earlier = self.state.monitor.user_guidance if self.state else []
        return self.job.guidance or (earlier[-1] if earlier else None)

    def diagnose(self, comparisons: Sequence[Comparison]) -> list[Finding]:
        """What the runtime's rules find in gate 2 and the readings under it."""
        from trainwarden.diagnosis import View, diagnose

        collected = self.content("collect")
        view = View(
            observations=self.observations,
            readings=self.readings(),
            facts=self.facts,
            comparisons=tuple(comparisons),
            earlier=self.samples,
            disagreements=tuple(
                Disagreement.model_validate(item) for item in collected["disagreements"]
            ),
            indicator=self.indicator(),
            now=self.clock(),
            live=self.live,
        )
        return [
            finding.model_copy(update={"id": f"F{number}"})
            for number, finding in enumerate(diagnose(view), 1)
        ]


def _report(item: Mapping[str, Any]) -> SourceReport:
    kept = {key: value for key, value in item.items() if key != "count"}
    return SourceReport.model_validate(kept | {"trust": Trust[str(item["trust"]).upper()]})
