"""Ends of turns, processes and contexts: what is open stays known, and nobody is stuck."""

from __future__ import annotations

import json

from support.claude import Client, front_matter
from support.model import Script, Turn, bash, call, say
from support.watcher import Watcher, leave
from trainwarden.guard import record


def guarded(watcher: Watcher) -> list[bool]:
    """What each gate says of the guard, in order."""
    return [front_matter(gate)["guarded"] for gate in sorted(watcher.folder.glob("[1-9]-*.md"))]


def test_a_turn_cannot_end_silently_with_open_gates(client: Client, watcher: Watcher) -> None:
    def main() -> Script:
        yield from watcher.begin()
        yield from watcher.seal("predict")
        asked = yield say("The run is healthy.")
        assert "Stop hook feedback" in asked.new
        assert "trainwarden collect" in asked.new
        asked = yield say("It is healthy, I said.")
        raise AssertionError(f"it must end now, and went on with {asked.new}")

    run = client.run("/trainwarden:monitor train.log", main())
    assert len(run.stopped) == 1
    assert run.final == "It is healthy, I said."
    assert run.code == 0


def test_a_turn_that_says_what_is_open_may_end(client: Client, watcher: Watcher) -> None:
    def main() -> Script:
        yield from watcher.begin()
        yield from watcher.seal("predict")
        yield say("Gates 2 to 9 are open; next is `trainwarden collect`. Shall I go on?")
        yield bash("trainwarden abandon --why 'the user does not want it'")
        yield say("Given up, as you say.")

    run = client.run(["/trainwarden:monitor train.log", "No, give it up."], main())
    assert run.stopped == []
    assert record.open_names(str(watcher.project)) == []
    (job,) = (watcher.project / "monitoring-logs/jobs").glob("*.json")
    assert json.loads(job.read_text())["monitor"]["abandoned"][0]["why"] == (
        "the user does not want it"
    )


def test_an_interrupted_session_goes_on_in_a_new_process(client: Client, watcher: Watcher) -> None:
    def first() -> Script:
        yield from watcher.begin()
        yield from watcher.seal("predict", "collect", "compare")
        client.kill()
        yield bash("true")

    one = client.run("/trainwarden:monitor train.log", first())
    assert one.code != 0

    def second() -> Script:
        yield from watcher.seal("assess")
        yield leave()

    two = client.run("Go on.", second(), arguments=["--resume", one.session])
    assert two.session == one.session
    told = two.of()[0].new
    assert "trainwarden assess" in told, told
    assert guarded(watcher) == [True] * 4


def test_an_interrupted_session_taken_up_by_a_fork(client: Client, watcher: Watcher) -> None:
    def first() -> Script:
        yield from watcher.begin()
        client.kill()
        yield bash("true")

    one = client.run("/trainwarden:monitor train.log", first())
    log = str(watcher.project / "train.log")

    def second() -> Script:
        asked = yield bash("trainwarden resume")
        assert not asked.result.failed, asked.result.text
        assert "trainwarden predict" in asked.result.text
        asked = yield call("Read", file_path=log)
        assert asked.result.failed, "gate 1 binds whoever took the session up"
        yield from watcher.seal("predict", "collect")
        yield leave()

    two = client.run(
        "/trainwarden:resume", second(), arguments=["--resume", one.session, "--fork-session"]
    )
    assert two.session != one.session
    assert watcher.folder.name in two.of()[0].new, "its start tells of the unfinished session"
    assert guarded(watcher) == [True, True]


def test_a_cleared_context_can_take_its_session_up(client: Client, watcher: Watcher) -> None:
    def main() -> Script:
        yield from watcher.begin()
        asked = yield from watcher.seal("predict")
        asked = yield say("Gates 2 to 9 are open; next is `trainwarden collect`.")
        assert watcher.folder.name in asked.new, "the start of a cleared context tells of it"
        asked = yield bash("trainwarden resume")
        assert not asked.result.failed, asked.result.text
        yield from watcher.seal("collect")
        yield leave()

    prompts = ["/trainwarden:monitor train.log", "/clear", "/trainwarden:resume"]
    client.run(prompts, main())
    assert guarded(watcher) == [True, True]


def test_compaction_in_the_middle(client: Client, watcher: Watcher) -> None:
    def main() -> Script:
        yield from watcher.begin()
        yield from watcher.seal("predict", "collect")
        asked = yield Turn(calls=bash(watcher.command("compare")).calls, tokens=990_000)
        assert "SUMMED UP" in asked.context
        assert "trainwarden assess" in asked.new, asked.new
        assert watcher.folder.name in asked.new
        assert "observe" in asked.new
        assert "load them again, trainwarden:training-monitor first" in asked.new
        yield from watcher.seal("assess")
        yield leave()

    run = client.run("/trainwarden:monitor train.log", main(), compacted="SUMMED UP")
    assert any(asked.lane == "side" for asked in run.asked)
    assert guarded(watcher) == [True] * 4


def test_a_neighbour_in_the_same_project_is_free(client: Client, watcher: Watcher) -> None:
    log = str(watcher.project / "train.log")

    def holder() -> Script:
        yield from watcher.begin()
        yield say("Gate 1 is next: `trainwarden predict`. Gates 1 to 9 are open.")

    def neighbour() -> Script:
        asked = yield call("Read", file_path=log)
        assert "ms/step" in asked.result.text
        asked = yield bash("tail -n 1 train.log; touch scratch")
        assert not asked.result.failed, asked.result.text
        asked = yield call(
            "Write", file_path=str(watcher.folder / "1-predict.md"), content="sealed"
        )
        assert asked.result.failed
        asked = yield bash(f"echo x > {watcher.folder}/1-predict.md")
        assert asked.result.failed
        yield say("Done.")

    client.run("/trainwarden:monitor train.log", holder())
    run = client.run("What is the loss?", neighbour())
    assert "/trainwarden:resume" in run.of()[0].new, "its start tells of the unfinished session"
    assert run.stopped == []
    assert (watcher.project / "scratch").exists()
    assert not (watcher.folder / "1-predict.md").exists()


def test_no_opinion_without_a_session(client: Client, watcher: Watcher) -> None:
    log = str(watcher.project / "train.log")

    def main() -> Script:
        asked = yield call("Read", file_path=log)
        assert "ms/step" in asked.result.text
        asked = yield bash("rm -r checkpoints && mkdir -p monitoring-logs && echo x > notes")
        assert not asked.result.failed, asked.result.text
        yield say("Done.")

    run = client.run("What is in config.yaml?", main())
    assert run.stopped == []
    assert not (watcher.project / "monitoring-logs/guard").exists()
