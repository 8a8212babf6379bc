"""Who runs a command."""

from pathlib import Path

from trainwarden.procedure.client import Client, present


def test_nobody_outside_of_claude_code() -> None:
    assert present({}) is None
    assert present({"TRAINWARDEN_ROOT": "/p", "CLAUDECODE": "0"}) is None


def test_a_client_session_and_the_project_that_is_guarded() -> None:
    told = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "a-1", "TRAINWARDEN_ROOT": "/p"}
    assert present(told) == Client("a-1", Path("/p"))


def test_a_client_that_does_not_tell_its_session_is_still_one() -> None:
    assert present({"CLAUDECODE": "1"}) == Client("", None)
