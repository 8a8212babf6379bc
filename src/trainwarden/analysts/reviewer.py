"""The built-in reviewer: re-reads the evidence by another path than the collector's.

It is given only what was sealed. It opens files by itself and searches them with a plain number
search, reads `/proc` instead of asking psutil, and takes criteria from the config's raw text.
"""

from __future__ import annotations

import math
import os
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

from trainwarden.procedure.duties import MACHINE_PREFIXES
from trainwarden.procedure.grounding import Citable
from trainwarden.procedure.seals import FRONT_MATTER, verify
from trainwarden.records.assessment import Assessment
from trainwarden.records.finding import Finding, Severity
from trainwarden.records.observation import Observation
from trainwarden.records.prediction import Comparison, Prediction
from trainwarden.records.review import Check, Reread, Review
from trainwarden.records.session import STEPS, Gate, SessionRecord

WINDOW = 64 * 1024
"""Bytes read around a place when it is read again."""

_NUMBER = re.compile(rb"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|(?i:nan|inf)")
_FACTORS = (1.0, 1e-3, 1e3, 1e6, 1e9, 1e-2, 60.0, 3600.0, 2.0**10, 2.0**20, 2.0**30)
"""Units in which a run may have printed what is kept in base units."""


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


def reread(item: Observation) -> Reread | None:
    """Read one observation again from its source by other code; None where there is no way."""
    if item.quantity.startswith("source."):
        return Reread(
            observation=item.id, found=item.value, agrees=True, how="the source's own report"
        )
    place = item.place
    if item.stat in {"last", "first", "min", "max"} and place.file and place.offset is not None:
        return _reread_line(item, Path(place.file), place.offset)
    if item.quantity in {"process.alive", "process.state"} and place.pid is not None:
        return _reread_process(item, place.pid)
    if item.quantity == "disk.free" and item.subject:
        return _reread_disk(item, item.subject)
    if item.quantity == "log.size" and place.file:
        return _reread_size(item, Path(place.file))
    return None


def _line_at(path: Path, offset: int) -> bytes | None:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            window = file.read(WINDOW)
    except OSError:
        return None
    line = re.split(rb"[\r\n]", window.lstrip(b"\r\n"), maxsplit=1)[0]
    # A document without lines for its values (a JSON tree, a table) is searched a little further.
    return line if len(_NUMBER.findall(line)) > 1 else window[:2_000]


def _reread_line(item: Observation, path: Path, offset: int) -> Reread | None:
    line = _line_at(path, offset)
    if line is None:
        how = f"{path} could not be opened again"
        return Reread(observation=item.id, found=None, agrees=False, how=how)
    how = f"bytes from {offset} of {path.name}, searched for the number"
    if isinstance(item.value, str):
        if item.text is None:
            return None
        words = re.findall(rb"[A-Za-z]{4,}", line)
        agrees = not words or any(word.decode() in item.text for word in words[:40])
        return Reread(observation=item.id, found=item.value, agrees=agrees, how=how)
    if isinstance(item.value, bool):
        return None
    found = _closest(line, float(item.value))
    if found is None:
        return Reread(observation=item.id, found=None, agrees=False, how=how)
    return Reread(observation=item.id, found=found, agrees=True, how=how)


def _closest(line: bytes, wanted: float) -> float | None:
    """The number in a line that is `wanted`, in whatever unit it was printed."""
    for text in _NUMBER.findall(line):
        try:
            number = float(text.replace(b",", b""))
        except ValueError:
            continue
        if math.isnan(wanted) or math.isinf(wanted):
            if str(number) == str(wanted):
                return number
            continue
        if any(
            math.isclose(number * factor, wanted, rel_tol=1e-6, abs_tol=1e-300)
            for factor in _FACTORS
        ):
            return wanted
        # Times per step printed as a rate, and the other way round.
        if number and math.isclose(1 / number, wanted, rel_tol=1e-6):
            return wanted
    return None


def _reread_process(item: Observation, pid: int) -> Reread:
    how = f"/proc/{pid}/stat"
    try:
        stat = Path(how).read_text(encoding="utf-8", errors="replace")
        letter = stat.rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        letter = "X"
    alive = letter not in "XZ"
    if item.quantity == "process.alive":
        return Reread(observation=item.id, found=alive, agrees=alive is item.value, how=how)
    stopped = letter in "Tt"
    agrees = (item.value == "stopped") is stopped and (
        item.value in {"zombie", "dead"}
    ) is not alive
    return Reread(observation=item.id, found=letter, agrees=agrees, how=how)


def _reread_disk(item: Observation, folder: str) -> Reread | None:
    try:
        numbers = os.statvfs(folder)
    except OSError:
        return None
    free = numbers.f_bavail * numbers.f_frsize
    agrees = abs(free - float(item.value)) <= 0.1 * max(free, float(item.value)) + 64 * 2**20
    return Reread(observation=item.id, found=free, agrees=agrees, how=f"statvfs of {folder}")


def _reread_size(item: Observation, path: Path) -> Reread | None:
    try:
        size = path.stat().st_size
    except OSError:
        return None
    agrees = size >= float(item.value)
    return Reread(observation=item.id, found=size, agrees=agrees, how=f"stat of {path.name}")


def _seals_hold(folder: Path) -> Check:
    checked = verify(folder)
    remark = f"{checked.broken}: {checked.problem}" if checked.broken else f"{checked.gates} gates"
    return Check(name="seals", passed=checked.broken is None, remark=remark)


def _criteria_stand(session: SessionRecord) -> Check:
    """Each criterion from the config must stand in the config's raw text."""
    job = session.header.job
    own = [
        c
        for c in session.header.criteria
        if job.config and c.source.startswith(Path(job.config).name)
    ]
    if not own:
        return Check(name="criteria", passed=True, remark="none from a config")
    try:
        text = Path(str(job.config)).read_bytes()
    except OSError as error:
        return Check(name="criteria", passed=True, remark=f"config not readable: {error.strerror}")
    missing = [
        criterion.id
        for criterion in own
        if isinstance(criterion.value, (int, float))
        and not isinstance(criterion.value, bool)
        and _closest(text, float(criterion.value)) is None
        and not _stands_as_product(text, float(criterion.value))
    ]
    remark = f"not found in {job.config}: {', '.join(missing)}" if missing else f"{len(own)} found"
    return Check(name="criteria", passed=not missing, remark=remark)


def _stands_as_product(text: bytes, wanted: float) -> bool:
    """Whether two numbers of a config multiply to it (batch size times accumulation)."""
    numbers = {float(n) for n in re.findall(rb"(?<![\w.])\d{1,9}(?:\.\d+)?(?![\w.])", text)}
    return any(number and wanted / number in numbers for number in numbers)


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
    last = next(
        (o for o in observations.values() if o.quantity == quantity and o.stat == "last"), None
    )
    ends = _two_ends(last) if last else None
    if ends is None:
        return Check(name="course", passed=True, remark=f"{quantity} has no label to search for")
    early, late = ends
    improved = late < early if assessment.indicator.direction == "decrease" else late > early
    remark = f"median {quantity} {early:.6g} near the beginning, {late:.6g} near the end"
    return Check(name="course", passed=improved, remark=remark)


def _two_ends(last: Observation) -> tuple[float, float] | None:
    """Medians of a metric in the first and last `WINDOW` bytes, found by the label before it."""
    if last.place.file is None or last.place.offset is None:
        return None
    path = Path(last.place.file)
    line = _line_at(path, last.place.offset)
    label = _label(line, float(last.value)) if line and not isinstance(last.value, str) else None
    if label is None:
        return None
    search = re.compile(
        rb"(?<![\w/])" + re.escape(label) + rb"[\"'\s:=]{1,6}(" + _NUMBER.pattern + rb")"
    )
    try:
        with path.open("rb") as file:
            head = file.read(WINDOW)
            file.seek(max(0, last.place.offset + len(line or b"") + 1 - WINDOW))
            tail = file.read(WINDOW)
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
    for match in re.finditer(rb"([A-Za-z][\w/.-]*)[\"'\s:=]{1,6}(" + _NUMBER.pattern + rb")", line):
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
