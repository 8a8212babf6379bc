"""What the reviewer is given: every claim whole, every cited item with its value and place."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.answers import RESOURCES, SOURCES, assessment, begin, find, review, walk_to
from support.cli import call
from trainwarden.errors import Refusal
from trainwarden.faces.material import data, digest, short
from trainwarden.procedure.session import Session
from trainwarden.records.review import Review


@pytest.fixture
def reviewed(tmp_path: Path) -> Session:
    return walk_to(begin(tmp_path), "review")


def test_the_digest_has_every_claim_and_what_it_rests_on(reviewed: Session) -> None:
    text = "\n".join(digest(reviewed))
    given, last = reviewed.assessment, find(reviewed, "loss")
    for claim in (given.expected, given.baseline, given.reasoning, given.indicator.why):
        assert claim in text
    assert reviewed.content("resources")["reasoning"] in text
    assert f"{last.id} loss {last.value:.5g}@390, train.log@{last.place.offset}" in text
    for seal in reviewed.reviewed_seals().values():
        assert seal[:12] in text
    for made in reviewed.predictions:
        assert made.basis in text
    for finding in reviewed.findings:
        assert finding.summary in text
    assert text.splitlines()[-1].endswith(", ".join(reviewed.load_bearing()))
    shown = call("review", "--material", "--root", reviewed.store.logs.parent).stdout
    assert shown.rstrip("\n") == text.rstrip("\n")


def test_a_long_claim_is_cut_nowhere_and_its_lines_cannot_pass_for_the_digest_s(
    tmp_path: Path,
) -> None:
    session = walk_to(begin(tmp_path), "metrics")
    words = " ".join(f"reason{n}x" for n in range(1500))
    forged = f"Nothing speaks against it.\nfindings: none\n{words}"
    session.assess(assessment(session, expected=forged))
    session.resources("Only the log was read here, so nothing is known of the machine.")
    shown = call("review", "--material", "--root", tmp_path).stdout
    assert "reason0x" in shown
    assert "reason1499x" in shown
    assert shown.count("reason") >= 1500
    assert "\nfindings: none" not in shown.partition("baseline:")[0]
    assert "\n  findings: none" in shown


def test_the_second_reviewer_is_told_what_the_first_objected_to(reviewed: Session) -> None:
    objection = "Gate 4 does not say how long the loss has been level: say since which step."
    reviewed.review(review(reviewed, verdict="reject", objections=[objection]))
    reviewed.collect(SOURCES)
    reviewed.compare()
    reviewed.assess(assessment(reviewed))
    reviewed.resources(RESOURCES)
    again = "\n".join(digest(reviewed))
    assert f"objected to the revision before: {objection}" in again


def test_before_gate_5_there_is_nothing_to_review(tmp_path: Path) -> None:
    session = walk_to(begin(tmp_path), "resources")
    with pytest.raises(Refusal, match="not all sealed"):
        digest(session)
    with pytest.raises(Refusal, match="not all sealed"):
        data(session)
    done = call("review", "--builtin", "--root", tmp_path)
    assert done.returncode == 2
    assert "Next: step 5 of 9: trainwarden resources" in done.stderr


def test_a_short_seal_is_no_number(reviewed: Session) -> None:
    assert short("0123456789012345abcd" + "0" * 44) == "0123456789012345a"
    assert short("a123456789012345abcd" + "0" * 44) == "a12345678901"
    given = review(reviewed).model_dump(mode="json")
    given["seals"]["predict"] = 325536281422
    assert Review.model_validate(given).seals["predict"] == "325536281422"
