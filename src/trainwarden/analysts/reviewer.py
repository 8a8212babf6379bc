"""The built-in reviewer: re-reads the evidence by another path than the collector's.

It is given only what was sealed; it reads again by `rereading`, and takes criteria from the
config's raw text.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

from trainwarden.analysts.rereading import NUMBER, WINDOW, closest, line_at, reread
from trainwarden.evidence.excerpts import text_at
from trainwarden.procedure.duties import MACHINE_PREFIXES
from trainwarden.procedure.grounding import Citable
from trainwarden.procedure.seals import FRONT_MATTER, verify
from trainwarden.records.assessment import Assessment
from trainwarden.records.finding import Finding, Severity
from trainwarden.records.observation import Observation
from trainwarden.records.prediction import Comparison, Prediction
from trainwarden.records.review import Check, Reread, Review
from trainwarden.records.session import STEPS, Gate, SessionRecord


class BuiltinReviewer:
    """Audits gates 1 to 5 without the analyst's code."""

    name = "built-in reviewer"

    def review(self, session: SessionRecord, root: Path) -> Review:
        """Judge the newest gates 1 to 5 of a session; see `Reviewer`."""
        gates = {gate.name: gate for gate in session.gates if gate.name in STEPS[:5]}
        observations = {
            item["id"]: Observation.model_validate(item)
            for item in gates["collect"].content["observations"]
        }
        assessment = Assessment.model_validate(gates["metrics"].content["assessment"])
        findings = [Finding.model_validate(f) for f in gates["compare"].content["findings"]]
        reread = _reread_one(_bearing(assessment, findings, gates), observations)
        folder = root / "monitoring-logs" / session.header.session
        checks = [
            _seals_hold(folder),
            _criteria_stand(session),
            _predictions_mean_something(gates["predict"]),
            _sources_complete(gates),
            _gpus_complete(observations, gates["resources"]),
            _numbers_grounded(session, gates, observations, assessment, findings),
            _status_coherent(assessment, findings, observations),
            _course_agrees(assessment, observations),
            *(_substance(folder, gate) for gate in gates.values()),
        ]
        objections = [f"{check.name}: {check.remark}" for check in checks if not check.passed]
        objections += [
            f"{item.observation} was read again and does not agree ({item.how}; found {item.found})"
            for item in reread
            if not item.agrees
        ]
        return Review(
            reviewer=self.name,
            verdict="reject" if objections else "approve",
            seals={name: gate.seal for name, gate in gates.items()},
            reread=tuple(reread),
            checks=tuple(checks),
            objections=tuple(objections),
        )


def _bearing(assessment: Assessment, findings: list[Finding], gates: dict[str, Gate]) -> list[str]:
    """Ids the verdict rests on, the ones it names first."""
    severe = [f for f in findings if f.severity is not Severity.INFO]
    named = [*assessment.failure, *assessment.progress]
    named += [name for finding in severe for name in finding.observations]
    named += [name for finding in findings for name in finding.observations]
    named += Citable().cited(assessment.reasoning)
    known = {item["id"] for item in gates["collect"].content["observations"]}
    return [name for name in dict.fromkeys(named) if name in known]


def _reread_one(bearing: list[str], observations: dict[str, Observation]) -> list[Reread]:
    """The first load-bearing observation that can be read again; others that were tried too."""
    tried: list[Reread] = []
    for name in bearing:
        result = reread(observations[name])
        if result is not None:
            return [result]
    for name in bearing[:1]:
        tried.append(
            Reread(
                observation=name,
                found=None,
                agrees=False,
                how="no other path to its source is known, so it stays unverified",
            )
        )
    return tried


def _seals_hold(folder: Path) -> Check:
    checked = verify(folder)
    remark = f"{checked.broken}: {checked.problem}" if checked.broken else f"{checked.gates} gates"
    return Check(name="seals", passed=checked.broken is None, remark=remark)


def _criteria_stand(session: SessionRecord) -> Check:
    """No criterion from the config may be contradicted by the config's raw text.

    It is where the key that it names stands with other numbers only. What is computed from several
    keys (its source then tells how), flags and what another file says is not judged here.
    """
    job = session.header.job
    name = Path(job.config).name if job.config else ""
    own = [c for c in session.header.criteria if name and c.source.startswith(f"{name}: ")]
    if not own:
        return Check(name="criteria", passed=True, remark="none from a config")
    try:
        text = Path(str(job.config)).read_bytes()
    except OSError as error:
        return Check(name="criteria", passed=True, remark=f"config not readable: {error.strerror}")
    contradicted = [
        f"{criterion.id} ({criterion.name} = {criterion.value})"
        for criterion in own
        if isinstance(criterion.value, (int, float))
        and not isinstance(criterion.value, bool)
        and _contradicts(text, criterion.source.removeprefix(f"{name}: "), float(criterion.value))
    ]
    remark = f"{job.config} says otherwise: {', '.join(contradicted)}"
    return Check(
        name="criteria",
        passed=not contradicted,
        remark=remark if contradicted else f"{len(own)} of the config stand",
    )


def _contradicts(text: bytes, key: str, wanted: float) -> bool:
    """Whether a plain key stands in a text, always before a number, and never before this one."""
    last = key.rpartition(".")[2]
    # `a.batch_size × b.world_size` was worked out, and no single key says it.
    if not re.fullmatch(r"[\w-]{2,80}", last) or not re.fullmatch(r"[\w.-]+", key):
        return False
    pattern = rb"(?<![\w-])" + re.escape(last.encode()) + rb"[\"']?[ \t]*[:=]([^\r\n,;#}\])]*)"
    said = [part.strip(b" \t\"'").replace(b"_", b"") for part in re.findall(pattern, text)]
    if not said or not all(NUMBER.fullmatch(part) for part in said):
        return False
    # A share of the whole may have been worked out.
    return not any(
        closest(part, wanted) is not None or 0 < float(part) < 1 < wanted for part in said
    )


def _predictions_mean_something(gate: Gate) -> Check:
    predictions = [Prediction.model_validate(item) for item in gate.content["predictions"]]
    vacuous = [
        p.id
        for p in predictions
        if p.one_of is None
        and (p.low is None or p.low == -math.inf)
        and (p.high is None or p.high == math.inf)
    ]
    if vacuous:
        return Check(
            name="predictions", passed=False, remark="can never miss: " + ", ".join(vacuous)
        )
    return Check(name="predictions", passed=True, remark=f"{len(predictions)} can all miss")


def _sources_complete(gates: dict[str, Gate]) -> Check:
    """Each source that could not be read must be named in gate 5."""
    reports = gates["collect"].content["reports"]
    said = " ".join(gates["resources"].content["unreadable"])
    silent = [r["source"] for r in reports if r["status"] != "ok" and r["source"] not in said]
    if silent:
        return Check(name="sources", passed=False, remark="passed over: " + ", ".join(silent))
    return Check(name="sources", passed=True, remark=f"{len(reports)} sources accounted for")


def _gpus_complete(observations: dict[str, Observation], gate: Gate) -> Check:
    """All devices that the driver lists must be in gate 5."""
    listed = sum(1 for _ in _driver_devices())
    counted = [int(o.value) for o in observations.values() if o.quantity == "gpu.count"]
    expected = max([listed, *counted])
    shown = {d["subject"] for d in gate.content["devices"] if " MIG " not in d["subject"]}
    passed = len(shown) >= expected
    return Check(name="GPUs", passed=passed, remark=f"{len(shown)} of {expected} shown")


def _driver_devices() -> Iterator[Path]:
    try:
        yield from Path("/proc/driver/nvidia/gpus").iterdir()
    except OSError:
        return


def _numbers_grounded(
    session: SessionRecord,
    gates: dict[str, Gate],
    observations: dict[str, Observation],
    assessment: Assessment,
    findings: list[Finding],
) -> Check:
    citable = Citable(
        observations.values(),
        session.header.criteria,
        [Prediction.model_validate(p) for p in gates["predict"].content["predictions"]],
        [Comparison.model_validate(c) for c in gates["compare"].content["comparisons"]],
        findings,
    )
    problems = citable.complaints("reasoning", assessment.reasoning)
    problems += citable.complaints("baseline", assessment.baseline)
    problems += citable.complaints("resources", gates["resources"].content["reasoning"])
    return Check(name="numbers", passed=not problems, remark="; ".join(problems[:5]))


def _status_coherent(
    assessment: Assessment, findings: list[Finding], observations: dict[str, Observation]
) -> Check:
    critical = [
        f for f in findings if f.severity is Severity.CRITICAL and f.id not in assessment.disputed
    ]
    status = assessment.status.value
    if critical and status in {"HEALTHY", "WARNING"}:
        kinds = ", ".join(finding.kind for finding in critical)
        return Check(name="coherence", passed=False, remark=f"{status} in spite of {kinds}")
    if status == "CRITICAL" and not any(n in observations for n in assessment.failure):
        return Check(name="coherence", passed=False, remark="CRITICAL without what shows it")
    if status == "HEALTHY" and all(
        observations[n].quantity.startswith(MACHINE_PREFIXES) for n in assessment.progress
    ):
        return Check(name="coherence", passed=False, remark="HEALTHY by the machine alone")
    return Check(name="coherence", passed=True, remark=f"{status} fits the findings")


def _course_agrees(assessment: Assessment, observations: dict[str, Observation]) -> Check:
    """For HEALTHY: medians of the indicator near the log's two ends, by a plain text search."""
    if assessment.status.value != "HEALTHY":
        return Check(name="course", passed=True, remark="only asked of HEALTHY")
    quantity = assessment.indicator.quantity
    found = {o.stat: o for o in reversed(observations.values()) if o.quantity == quantity}
    last = found.get("last")
    ends = _two_ends(last, found.get("first", last)) if last else None
    if ends is None:
        return Check(name="course", passed=True, remark=f"{quantity} has no label to search for")
    early, late = ends
    improved = late < early if assessment.indicator.direction == "decrease" else late > early
    remark = f"median {quantity} {early:.6g} near the beginning, {late:.6g} near the end"
    return Check(name="course", passed=improved, remark=remark)


def _two_ends(last: Observation, first: Observation) -> tuple[float, float] | None:
    """Medians of a metric in the first and last `WINDOW` bytes, found by the label before it."""
    if last.place.file is None or last.place.offset is None:
        return None
    path = Path(last.place.file)
    line = line_at(path, last.place.offset)
    label = _label(line, float(last.value)) if line and not isinstance(last.value, str) else None
    if label is None:
        return None
    search = re.compile(
        rb"(?<![\w/])" + re.escape(label) + rb"[\"'\s:=]{1,6}(" + NUMBER.pattern + rb")"
    )
    end = last.place.offset + len(line or b"") + 1
    try:
        head = text_at(Path(first.place.file or path), 0, WINDOW)
        tail = text_at(path, max(0, end - WINDOW), WINDOW)
    except OSError:
        return None
    early, late = (
        [float(n.replace(b",", b"")) for n in search.findall(part)] for part in (head, tail)
    )
    early, late = early[: max(1, len(early) // 4)], late[-max(1, len(late) // 4) :]
    if len(early) < 2 or len(late) < 2:
        return None
    return statistics.median(early), statistics.median(late)


def _label(line: bytes, wanted: float) -> bytes | None:
    for match in re.finditer(rb"([A-Za-z][\w/.-]*)[\"'\s:=]{1,6}(" + NUMBER.pattern + rb")", line):
        try:
            if math.isclose(float(match[2].replace(b",", b"")), wanted, rel_tol=1e-6):
                return match[1]
        except ValueError:
            continue
    return None


def _substance(folder: Path, gate: Gate) -> Check:
    name = f"substance of {gate.file}"
    try:
        text = (folder / gate.file).read_text(encoding="utf-8")
    except OSError as error:
        return Check(name=name, passed=False, remark=f"cannot be read: {error.strerror}")
    match = FRONT_MATTER.match(text)
    body = match["body"] if match else ""
    sections = re.split(r"^## (Input|Execution|Output|Next)$", body, flags=re.MULTILINE)[1:]
    found = dict(zip(sections[::2], sections[1::2], strict=False))
    empty = [s for s in ("Input", "Execution", "Output", "Next") if not found.get(s, "").strip()]
    if empty:
        return Check(name=name, passed=False, remark="empty sections: " + ", ".join(empty))
    return Check(name=name, passed=True)
