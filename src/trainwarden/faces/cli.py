"""The command line: `trainwarden`. Commands are loaded when they are called."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys

import click

from trainwarden import __version__
from trainwarden.errors import TrainwardenError

COMMANDS = {
    "begin": "steps",
    "predict": "steps",
    "collect": "steps",
    "compare": "steps",
    "assess": "steps",
    "resources": "steps",
    "review": "steps",
    "troubleshoot": "steps",
    "strategize": "steps",
    "finish": "steps",
    "resume": "opening",
    "abandon": "opening",
    "run": "watching",
    "status": "watching",
    "show": "watching",
    "verify": "watching",
    "reread": "rereads",
    "replay": "watching",
    "jobs": "looking",
    "diagnose": "diagnosing",
    "read": "looking",
    "probe": "looking",
    "step": "looking",
    "doctor": "doctor",
}

EPILOG = """\b
Exit codes of run, finish, diagnose: 0 HEALTHY, 10 WARNING, 20 UNCERTAIN, 30 CRITICAL.
Of verify: 0 all seals hold, 1 not. Of all commands: 2 the call or the input
was refused (the message says why), 1 the tool itself could not do it.
"""


class Lazy(click.Group):
    """A group whose commands' modules are imported only when one of them runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """In the order of work, not of the alphabet."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the module that has the command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"trainwarden.faces.{COMMANDS[cmd_name]}")
        command = getattr(module, cmd_name)
        assert isinstance(command, click.Command)  # noqa: S101
        return command


@click.group(cls=Lazy, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def cli() -> None:
    """Watch a training run so that the verdict follows from evidence.

    A session walks nine steps (predict, collect, compare, assess, resources, review,
    troubleshoot, strategize, finish); `run` walks them all with the built-in rules.
    """


def main() -> None:
    """Run the command line; every failure is one message and an exit code."""
    try:
        code = cli.main(standalone_mode=False)
        _flush()
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except click.ClickException as error:
        code = _failed(error.format_message(), error.exit_code, error)
    except click.Abort:
        code = _failed("interrupted", 130)
    except TrainwardenError as error:
        code = _failed(str(error), error.exit_code)
    except BrokenPipeError:
        # The reader went away (`| head`): nothing is wrong, and nothing more can be said.
        code = 0
    except OSError as error:
        code = _failed(_unanswered(error), 1)
    except Exception as error:
        if os.environ.get("TRAINWARDEN_DEBUG"):
            raise
        told = f"internal error, {type(error).__name__}: {error}. "
        code = _failed(told + "Set TRAINWARDEN_DEBUG=1 to see where.", 1)
    try:
        _flush()
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            code = _failed(_unanswered(error), 1)
        # Nothing may fail on it again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(code if isinstance(code, int) else 0)


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _unanswered(error: OSError) -> str:
    where = f" ({error.filename})" if error.filename else ""
    return (
        f"the answer could not be given: {error.strerror or error}{where}. "
        "What was sealed by then stays sealed; `trainwarden status` tells."
    )


def _failed(message: str, code: int, error: click.ClickException | None = None) -> int:
    """Say on standard error why; with --json, standard output gets the same as data."""
    from trainwarden.faces.streams import emit_json, say

    with contextlib.suppress(OSError):
        if error is not None:
            error.show()
        else:
            say(f"trainwarden: {message}", err=True)
    if "--json" in sys.argv[1:]:
        with contextlib.suppress(OSError):
            emit_json({"error": message, "exit": code})
    return code


if __name__ == "__main__":
    main()
