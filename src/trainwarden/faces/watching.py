"""Whole sessions: run one, list what is known, show, verify, replay."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainwarden.errors import Refusal, TrainwardenError
from trainwarden.faces.clients import shows_evidence
from trainwarden.faces.common import (
    how_to_start,
    job_options,
    latest_session,
    session_folder,
    store_at,
    take_over_option,
    wait_option,
)
from trainwarden.faces.recap import steps
from trainwarden.faces.streams import (
    duration,
    emit_json,
    finding_line,
    json_option,
    root_option,
    say,
    table,
    when,
)
from trainwarden.procedure.leftovers import tidy
from trainwarden.procedure.state import StateStore
from trainwarden.records.job import Job

if TYPE_CHECKING:
    from trainwarden.procedure.session import Session


@click.command()
@shows_evidence
@job_options
@take_over_option
@wait_option
@json_option
def run(
    store: StateStore, job: Job, authority: Any, take_over: bool, wait: float, as_json: bool
) -> None:
    """Walk all nine steps with the built-in rules; exit by the status."""
    from trainwarden.analysts.reviewer import BuiltinReviewer
    from trainwarden.analysts.rules import RulesAnalyst
    from trainwarden.procedure.session import Session
    from trainwarden.procedure.walk import walk

    analyst = RulesAnalyst()
    with store.hold(job.id, wait=wait, purpose="run"):
        # What a killed run left open is this command's own to set aside, nobody else's.
        session = Session.begin(
            store,
            job,
            analyst=analyst.name,
            authority=authority,
            take_over="any" if take_over else "own",
        )
        walk(session, analyst, BuiltinReviewer())
    if as_json:
        emit_json(session_data(session))
    else:
        say(session_text(session))
    raise click.exceptions.Exit(session.assessment.status.exit_code)


def session_data(session: Session) -> dict[str, Any]:
    """A finished session as `run --json` gives it."""
    summary = session.content("summary")
    assessment = session.assessment
    return {
        "session": session.header.session,
        "job": session.job.id,
        "config": session.job.config,
        "logs": list(session.job.logs),
        "status": summary["status"],
        "step": summary["step"],
        "total_steps": summary["total_steps"],
        "ended": summary["ended"],
        "eta_seconds": summary["eta_seconds"],
        "indicator": {
            "quantity": summary["indicator"]["quantity"],
            "direction": summary["indicator"]["direction"],
            "value": summary["value"],
        },
        "reasoning": assessment.reasoning,
        "question": assessment.question,
        "predictions": summary["predictions"],
        "findings": summary["findings"],
        "review": summary["review"],
        "plan": session.content("strategy")["strategy"]["plan"]["actions"],
        "evaluate_after": summary["evaluate_after"],
        "notes": list(session.header.notes),
        "gates": str(session.folder),
    }


def session_text(session: Session) -> str:
    """A finished session in a few lines."""
    data = session_data(session)
    lines = [_outcome(data)]
    logs = ", ".join(data["logs"]) or "no log"
    lines.append(f"job {data['job']}: {logs}; config {data['config'] or 'none'}")
    lines += [f"note: {note}" for note in data["notes"]]
    lines.append(data["reasoning"])
    lines.append(_held(data))
    lines += [finding_line(finding) for finding in data["findings"]] or ["findings: none"]
    if data["question"]:
        lines.append(f"question: {data['question']}")
    lines += [f"next: {action}" for action in data["plan"][:3]]
    lines.append(f"look again: {when(data['evaluate_after'])}")
    lines.append(f"gates: {data['gates']}")
    return "\n".join(lines)


def closing(session: Session) -> str:
    """What `finish` adds to what the analyst wrote: all that the user is to be told, and where."""
    data = session_data(session)
    lines = [_outcome(data), _held(data)]
    lines += [f"unverified: {text}" for text in session.content("review")["unverified"]]
    lines += [f"question: {data['question']}"] if data["question"] else []
    lines += [f"look again: {when(data['evaluate_after'])}", f"gates: {data['gates']}"]
    return "\n".join(lines)


def _outcome(data: dict[str, Any]) -> str:
    shown = table([(data["indicator"]["quantity"], data["indicator"]["value"])])
    return f"{data['status']}  {shown}{how_far(data)}"


def _held(data: dict[str, Any]) -> str:
    counts = data["predictions"]
    observed = counts["made"] - counts["unobserved"]
    return f"predictions: {counts['held']} of {observed} held ({counts['made']} made)"


def how_far(data: dict[str, Any]) -> str:
    """Step, share of the whole and time left, as far as they are known."""
    step, total, eta = data["step"], data["total_steps"], data["eta_seconds"]
    if step is None:
        return ""
    share = f" of {total} ({step / total:.0%})" if total else ""
    left = f", about {duration(eta)} left" if eta is not None else ""
    ended = f", {data['ended']}" if data["ended"] not in ("running", "unknown") else ""
    return f" at step {step}{share}{ended}{left}"


@click.command()
@root_option
@json_option
def status(root: Path, as_json: bool) -> None:
    """All jobs known here, one line each; the nine steps of each open session as a list."""
    store = store_at(root)
    tidy(store)
    rows, broken = [], []
    for name in store.known():
        try:
            state, note = store.load(name)
        except TrainwardenError as error:
            broken.append(str(error))
            continue
        if state is None:
            broken.append(note or f"{name}: no state")
            continue
        last = state.monitor.status_history[-1] if state.monitor.status_history else None
        counts = list(state.monitor.calibration.values())
        current = state.monitor.open_session
        rows.append(
            {
                "job": name,
                "status": last.status.value if last else None,
                "step": last.step if last else None,
                "indicator": last.indicator.quantity if last and last.indicator else None,
                "value": last.value if last else None,
                "findings": last.findings if last else [],
                "sessions": state.meta.session_count,
                "held": sum(count.held for count in counts),
                "observed": sum(count.held + count.missed for count in counts),
                "expected_held": round(sum(count.expected for count in counts), 2),
                "last": last.time.strftime("%Y-%m-%d %H:%M:%SZ") if last else None,
                "open": current.session if current else None,
                **_standing(store, current.session if current else None),
                "calibration": {
                    quantity: count.model_dump(mode="json")
                    for quantity, count in state.monitor.calibration.items()
                },
            }
        )
    if as_json:
        emit_json({"jobs": rows, "problems": broken})
        return
    if not rows and not broken:
        say(f"no job is known in {store.logs}: start with {how_to_start()}")
    if rows:
        shown = [
            (
                row["job"],
                row["status"] or "-",
                "-" if row["step"] is None else row["step"],
                f"{row['indicator']} {row['value']:.6g}" if row["value"] is not None else "-",
                f"{row['held']}/{row['observed']} (expected {row['expected_held']:.1f})"
                if row["observed"]
                else "-",
                row["sessions"],
                row["last"] or "-",
                f"open {row['open']}" if row["open"] else "",
            )
            for row in rows
        ]
        header = ("job", "status", "step", "indicator", "held", "sessions", "last", "")
        say(table(shown, header))
    for row in rows:
        if row["open"]:
            said = f"session {row['open']} (authority {row['authority']})" if "steps" in row else ""
            say("\n".join([said or row["open"], *steps(row.get("steps", [])), row["next"]]))
    for problem in broken:
        say(f"problem: {problem}", err=True)


def _standing(store: StateStore, name: str | None) -> dict[str, Any]:
    """What comes next in an open session, and its nine steps as far as they can be read."""
    from trainwarden.procedure.session import Session

    if name is None:
        return {"next": None}
    try:
        session = Session.resume(store, store.logs / name)
    except TrainwardenError as error:
        return {"next": str(error)}
    return {
        "next": session.next_line(),
        "authority": session.header.authority,
        "steps": session.steps(),
    }


@click.command()
@click.argument("session_name", metavar="[SESSION]", required=False)
@click.option("--gate", type=click.IntRange(1, 9), help="Print this gate's file whole.")
@click.option("--table", "as_table", is_flag=True, help="Print what was seen, as collect did.")
@root_option
@json_option
def show(
    session_name: str | None, gate: int | None, as_table: bool, root: Path, as_json: bool
) -> None:
    """A session (default: the newest): its gates, its verdict, what was seen, one gate whole."""
    from trainwarden.procedure.session import Session

    store = store_at(root)
    session = Session.resume(store, session_folder(store, session_name or latest_session(store)))
    if as_table:
        if session.latest("collect") is None:
            raise Refusal(f"nothing was collected yet. {session.next_line()}")
        from trainwarden.faces.tables import evidence

        content = session.content("collect")
        return emit_json(content) if as_json else say("\n".join(evidence(content)))
    if gate is not None:
        chosen = [one for one in session.record.gates if one.step == gate]
        if not chosen:
            raise Refusal(f"gate {gate} is not sealed. {session.next_line()}")
        if as_json:
            emit_json(chosen[-1].model_dump(mode="json"))
            return
        try:
            click.echo((session.folder / chosen[-1].file).read_text(encoding="utf-8"), nl=False)
        except (OSError, UnicodeDecodeError) as error:
            raise Refusal(f"cannot read {chosen[-1].file}: {error}") from error
        return
    if as_json:
        emit_json(session.record.model_dump(mode="json"))
        return
    header = session.header
    say(f"session {header.session} of job {header.job.id}, analyst {header.analyst}")
    rows = [
        (
            one.step,
            one.file,
            one.sealed_at.strftime("%H:%M:%S"),
            one.seal[:12],
            "skipped" if one.skipped else "",
        )
        for one in session.record.gates
    ]
    say(table(rows, ("step", "gate", "sealed", "seal", "")))
    say(session_text(session) if session.latest("summary") else session.next_line())


@click.command()
@click.argument("session_name", metavar="[SESSION]", required=False)
@click.option("--all", "every", is_flag=True, help="All sessions that are here or remembered.")
@root_option
@json_option
def verify(session_name: str | None, every: bool, root: Path, as_json: bool) -> None:
    """Re-compute every seal of a session (default: the newest).

    Exit 1 and the first broken gate named when anything was touched, removed or reordered.
    """
    from trainwarden.procedure.remembered import check, check_all

    store = store_at(root)
    named = None if every else session_name or latest_session(store)
    checked = check_all(store) if named is None else [check(store, named)]
    rows = [
        {
            "session": one.session,
            "intact": one.broken is None,
            "gates": one.gates,
            "head": one.head,
            "broken": one.broken,
            "problem": one.problem,
            "leftovers": list(one.leftovers),
        }
        for one in checked
    ]
    intact = all(row["intact"] for row in rows)
    if as_json:
        emit_json({"intact": intact, "sessions": rows} if every else rows[0])
    else:
        for one in checked:
            if one.broken is None:
                say(f"{one.session}: all {one.gates} seals hold ({one.head[:12]})")
            else:
                say(f"{one.session}: BROKEN at {one.broken}: {one.problem}")
            for name in one.leftovers:
                say(f"{name}: not sealed; a command was stopped before it could seal it")
    raise click.exceptions.Exit(0 if intact else 1)


@click.command()
@shows_evidence
@click.argument("log", type=click.Path(path_type=Path))
@click.option("--sessions", type=click.IntRange(1, 200), default=5, show_default=True)
@click.option("--config", type=click.Path(path_type=Path), help="The run's training config.")
@click.option("--guidance", help="What is known of the run.")
@click.option("--keep", type=click.Path(path_type=Path), help="Keep the sessions in this folder.")
@json_option
def replay(
    log: Path,
    sessions: int,
    config: Path | None,
    guidance: str | None,
    keep: Path | None,
    as_json: bool,
) -> None:
    """Feed a finished log in N cuts to N sessions: what would have been told, and when."""
    from trainwarden.analysts.reviewer import BuiltinReviewer
    from trainwarden.analysts.rules import RulesAnalyst
    from trainwarden.procedure.replay import replay as replay_log

    if not log.is_file():
        raise Refusal(f"the log {log} does not exist or is no file")
    if config is not None and not config.is_file():
        raise Refusal(f"the config {config} does not exist or is no file")
    with tempfile.TemporaryDirectory(prefix="trainwarden-replay-") as temporary:
        folder = Path(temporary)
        if keep is not None:
            folder = keep.expanduser().absolute()
            if folder.exists() and any(folder.iterdir()):
                raise Refusal(f"--keep {folder} is not empty")
            folder.mkdir(parents=True, exist_ok=True)
        told = replay_log(
            log,
            sessions,
            RulesAnalyst(),
            BuiltinReviewer(),
            folder,
            config=config.absolute() if config else None,
            guidance=guidance,
        )
    if as_json:
        emit_json(told)
        return
    rows = []
    for number, cut in enumerate(told["cuts"], 1):
        held = [row["held"] for row in cut["predictions"] if row["held"] is not None]
        kinds = ", ".join(f"{f['kind']} ({f['severity']})" for f in cut["findings"]) or "none"
        step = "-" if cut["at_step"] is None else cut["at_step"]
        rows.append((number, step, cut["status"], f"{sum(held)}/{len(held)}", kinds))
    say(table(rows, ("cut", "step", "status", "held", "findings")))
    for level, share in told["coverage"].items():
        say(f"predictions at level {level}: {share:.0%} held")
