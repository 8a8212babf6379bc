"""One command a step: for an analyst who answers each step itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from trainwarden.errors import Refusal
from trainwarden.faces import tables
from trainwarden.faces.clients import refuse_handed_in, unguarded_note, verdict_in_client
from trainwarden.faces.common import (
    job_options,
    open_session,
    require_session,
    session_option,
    take_over_option,
    wait_option,
)
from trainwarden.faces.streams import emit_json, json_option, read_input, root_option, say
from trainwarden.faces.watching import closing
from trainwarden.procedure import client
from trainwarden.procedure.intake import parse, validation_lines
from trainwarden.procedure.session import Session
from trainwarden.procedure.state import StateStore
from trainwarden.procedure.witness import Witness
from trainwarden.records.assessment import Assessment, Status, Troubleshooting
from trainwarden.records.hypothesis import Strategy
from trainwarden.records.job import Job
from trainwarden.records.prediction import Prediction
from trainwarden.records.review import Review
from trainwarden.records.session import Gate

input_option = click.option(
    "--input", "source", default="-", help="File with the input; default: standard input."
)


def example(text: str) -> Any:
    """Show an example input at the end of a command's help, exactly as it is to be typed."""
    return "\b\nExample input:\n" + "\n".join(f"  {line}" for line in text.strip().splitlines())


def step_options(function: Any) -> Any:
    """The options all step commands have."""
    for option in (json_option, wait_option, session_option, root_option):
        function = option(function)
    return function


def answer(session: Session, gate: Gate, as_json: bool, *, more: str = "") -> None:
    """Say what was sealed and what comes next."""
    if as_json:
        emit_json(
            {
                "sealed": gate.file,
                "step": gate.step,
                "revision": gate.revision,
                "seal": gate.seal,
                "content": gate.content,
                "next": session.next_line(),
            }
        )
        return
    if more:
        say(more)
    say(f"sealed {gate.file} ({gate.seal[:12]})")
    say(session.next_line())


@click.command()
@job_options
@click.option(
    "--analyst", help="Who predicts and reasons; default: claude-code in Claude Code, else analyst."
)
@take_over_option
@wait_option
@json_option
def begin(
    store: StateStore,
    job: Job,
    authority: Any,
    analyst: str | None,
    take_over: bool,
    wait: float,
    as_json: bool,
) -> None:
    """Open a session: criteria from config and history, nothing of the run is read yet."""
    runs_us = client.present()
    witness = Witness.of(store.logs.parent, runs_us, "begin") if runs_us else None
    usual = client.ANALYST if runs_us else "analyst"
    with store.hold(job.id, wait=wait, purpose="begin"):
        session = Session.begin(
            store,
            job,
            analyst=analyst if analyst is not None else usual,
            authority=authority,
            take_over="any" if take_over else "no",
            witness=witness,
        )
    note = unguarded_note(witness) if witness else ""
    header = session.header
    if as_json:
        due = [hypothesis.model_dump(mode="json") for hypothesis in session.due]
        emit_json(
            {
                "header": header.model_dump(mode="json"),
                "folder": str(session.folder),
                "due": due,
                "next": session.next_line(),
                **({"note": note} if note else {}),
            }
        )
        return
    say(f"job {header.job.id}, session {header.session} (number {header.number})")
    say(f"config {header.job.config or '-'}; logs {', '.join(header.job.logs) or '-'}")
    for note in header.notes:
        say(f"note: {note}")
    for learning in header.learnings:
        say(f"learning: {learning}")
    for line in tables.criteria(header.criteria, header.job.config):
        say(line)
    if session.state:
        for line in tables.calibration(session.state.monitor.calibration):
            say(line)
    if session.state and session.state.monitor.status_history:
        last = session.state.monitor.status_history[-1]
        say(f"last session {last.session}: {last.status.value} at step {last.step}")
    for hypothesis in session.due:
        say(f"due {hypothesis.id}: {hypothesis.statement}")
        say(f"  expected: {hypothesis.expected_outcome}")
        say(f"  fails if: {hypothesis.failure_criterion}")
    if note:
        say(f"note: {note}")
    say(session.next_line())


@click.command(
    epilog=example("""
- quantity: step
  low: 900
  high: 1100
  level: 0.9
  basis: 12 steps/s since 13:05 [C4]
- quantity: loss
  low: 1.2
  high: 1.6
  level: 0.9
  basis: trend of the last session
- quantity: process.alive
  one_of: [true]
  level: 0.95
  basis: ends at step 3000 only
""")
)
@input_option
@step_options
def predict(source: str, root: Path, session_name: str | None, wait: float, as_json: bool) -> None:
    """Step 1: seal predictions before anything of the run is read."""
    require_session(root, session_name)
    data = read_input(source)
    items = data.get("predictions") if isinstance(data, dict) else data
    if not isinstance(items, list):
        raise Refusal("predict: a list of predictions is expected; --help has an example")
    predictions, problems = [], []
    for number, item in enumerate(items, 1):
        try:
            predictions.append(Prediction.model_validate(item))
        except ValidationError as error:
            problems.append(validation_lines(error, f"prediction {number}: "))
    if problems:
        listed = "\n".join(problems)
        raise Refusal(f"predict: not sealed, because\n{listed}\nMend this and send it again.")
    with open_session(root, session_name, wait, "predict") as session:
        answer(session, session.predict(predictions), as_json)


@click.command()
@step_options
def collect(root: Path, session_name: str | None, wait: float, as_json: bool) -> None:
    """Step 2: read all sources in parallel; number what was seen."""
    with open_session(root, session_name, wait, "collect") as session:
        gate = session.collect()
        answer(session, gate, as_json, more="\n".join(tables.evidence(gate.content)))


@click.command(
    epilog=example("""
P2: "loss is above its interval [P2] because evaluation was added in this session [E9]"
""")
)
@click.option("--explain", help="File (or -) with an explanation per prediction, optional.")
@step_options
def compare(
    explain: str | None, root: Path, session_name: str | None, wait: float, as_json: bool
) -> None:
    """Step 3: each prediction against what was seen, and what the runtime's rules find."""
    require_session(root, session_name)
    explanations = read_input(explain) if explain else {}
    if not isinstance(explanations, dict) or not all(
        isinstance(word, str) for pair in explanations.items() for word in pair
    ):
        raise Refusal("compare: a mapping of prediction to explanation is expected")
    with open_session(root, session_name, wait, "compare") as session:
        gate = session.compare(explanations)
        lines = tables.comparisons(session.comparisons, session.predictions)
        lines += tables.findings(session.findings)
        demands = session.demands() if session.in_client else ()
        lines += [
            f"load before assess (Skill tool): trainwarden:{demand.skill} ({demand.why})"
            for demand in demands
        ]
        answer(session, gate, as_json, more="\n".join(lines))


@click.command(
    epilog=example("""
status: HEALTHY                 # or WARNING, UNCERTAIN, CRITICAL
indicator:
  quantity: loss
  direction: decrease
  why: the run logs no other measure of learning
expected: "With warm-up over at step 100 [C3] the loss should fall steadily."
baseline: "A model that does not learn would stay at 4.16 [C7]."
reasoning: "The loss is 1.48 [E12], from 4.21 [E13] at the beginning."
progress: [E12, E13]            # HEALTHY; CRITICAL has failure: [E..]
# WARNING: process. UNCERTAIN: tried, why_failed, would_resolve, question.
""")
)
@input_option
@step_options
def assess(source: str, root: Path, session_name: str | None, wait: float, as_json: bool) -> None:
    """Step 4: the status with the articulation it owes; every number cites."""
    require_session(root, session_name)
    assessment = parse(Assessment, read_input(source), "assess")
    with open_session(root, session_name, wait, "assess") as session:
        answer(session, session.assess(assessment), as_json)


@click.command(
    epilog=example("""
reasoning: "GPU 0 draws 0.93 of its limit [E40] and nothing holds its clocks down [E44]."
""")
)
@input_option
@step_options
def resources(
    source: str, root: Path, session_name: str | None, wait: float, as_json: bool
) -> None:
    """Step 5: what hardware, processes and disks tell; every device is listed."""
    require_session(root, session_name)
    data = read_input(source)
    reasoning = data.get("reasoning") if isinstance(data, dict) else data
    if not isinstance(reasoning, str):
        raise Refusal("resources: a text under `reasoning` is expected; --help has an example")
    with open_session(root, session_name, wait, "resources") as session:
        answer(session, session.resources(reasoning), as_json)


@click.command(
    epilog=example("""
reviewer: quality-reviewer
verdict: approve                # or reject, with objections
seals: {predict: 9f…, collect: 3a…, compare: 77…, metrics: 0c…, resources: d2…}
reread:
  - {observation: E12, found: 1.48, agrees: true, how: "tail of train.log, last step line"}
objections: []
learnings:
  - {scope: job, text: "evaluation pauses the log for two minutes every 500 steps"}
""")
)
@input_option
@click.option("--builtin", is_flag=True, help="Let the built-in reviewer audit.")
@click.option("--material", is_flag=True, help="Only show what a verdict must name; seal nothing.")
@step_options
def review(
    source: str,
    builtin: bool,
    material: bool,
    root: Path,
    session_name: str | None,
    wait: float,
    as_json: bool,
) -> None:
    """Step 6: the verdict of a reviewer who is not the analyst, on exactly these five gates."""
    require_session(root, session_name)
    given = None
    if client.present() is None:
        given = None if builtin or material else parse(Review, read_input(source), "review")
    elif not (builtin or material):
        refuse_handed_in(source)
    with open_session(root, session_name, wait, "review", seals=not material) as session:
        if material:
            from trainwarden.faces import material as sealed

            if as_json:
                return emit_json(sealed.data(session))
            return say("\n".join(sealed.digest(session)))
        if session.in_client:
            given = verdict_in_client(session, given, builtin=builtin)
        if given is None:
            from trainwarden.analysts.reviewer import BuiltinReviewer

            session.expect("review")
            given = BuiltinReviewer().review(session.record, session.store.logs.parent)
        gate = session.review(given)
        lines = [f"{gate.content['outcome']} by {given.reviewer}", *given.objections]
        lines += [f"unverified: {text}" for text in given.unverified]
        answer(session, gate, as_json, more="\n".join(lines))


@click.command(
    epilog=example("""
causes:
  - statement: "The gradient overflowed at step 412 [E20] before the loss did [E21]."
    role: initiating            # then cascade, teardown
    observations: [E20, E21]
    evidence_type: inference    # at most 0.70; research 0.85; observation 0.95
    confidence: 0.6
    alternatives: ["a corrupt batch"]
    first_action: "Look at the batch of step 411 before changing anything."
""")
)
@input_option
@click.option("--skip", help="Seal step 7 as skipped, with this reason, where that is allowed.")
@step_options
def troubleshoot(
    source: str, skip: str | None, root: Path, session_name: str | None, wait: float, as_json: bool
) -> None:
    """Step 7: root causes in causal order."""
    require_session(root, session_name)
    if skip is not None:
        report = Troubleshooting(skipped=skip)
    else:
        report = parse(Troubleshooting, read_input(source), "troubleshoot")
    with open_session(root, session_name, wait, "troubleshoot") as session:
        answer(session, session.troubleshoot(report), as_json)


@click.command(
    epilog=example("""
scores:                         # every due hypothesis, first
  - hypothesis: H1-2
    outcome: REFUTED
    observations: [E12]
    reasoning: it went on rising
hypotheses:                     # three for WARNING, CRITICAL, UNCERTAIN
  - dimension: optimiser
    statement: "The learning rate is too high for this batch size."
    action: "Resume the last good checkpoint with half the learning rate."
    expected_outcome: "The loss falls again within 200 steps of the resume."
    failure_criterion: "The loss is not lower 200 steps after the resume."
    counter_hypothesis: "A bad shard of data raises the loss whatever the rate."
    cost: "200 steps, ten minutes"
    learnt_if_confirmed: "the rate was the cause"
    learnt_if_refuted: "look at the data next"
    success:
      quantity: loss
      comparison: "<"
      threshold: 2.1
chosen: "1"
plan:
  actions: ["Ask the user before resuming."]
  success_criteria: ["loss below 2.1 at step 1200"]
  failure_criteria: ["loss above 2.1 at step 1200"]
evaluate_after: {step: 1200}
""")
)
@input_option
@step_options
def strategize(
    source: str, root: Path, session_name: str | None, wait: float, as_json: bool
) -> None:
    """Step 8: due hypotheses scored, new ones that can fail, a plan, when to look again."""
    require_session(root, session_name)
    strategy = parse(Strategy, read_input(source), "strategize")
    with open_session(root, session_name, wait, "strategize") as session:
        answer(session, session.strategize(strategy), as_json)


@click.command()
@click.option("--summary", default="", help="A closing sentence; its numbers must cite.")
@step_options
def finish(summary: str, root: Path, session_name: str | None, wait: float, as_json: bool) -> None:
    """Step 9: seal the summary, write the job's state, exit by the status."""
    with open_session(root, session_name, wait, "finish") as session:
        gate = session.finish(summary)
        answer(session, gate, as_json, more=closing(session))
    raise click.exceptions.Exit(Status(gate.content["status"]).exit_code)
