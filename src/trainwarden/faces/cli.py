"""The command line: `trainwarden`. Commands are loaded when they are called."""

from __future__ import annotations

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
    "run": "watching",
    "status": "watching",
    "show": "watching",
    "verify": "watching",
    "replay": "watching",
    "jobs": "looking",
    "read": "looking",
    "probe": "looking",
}

EPILOG = """\b
Exit codes of run and finish: 0 HEALTHY, 10 WARNING, 20 UNCERTAIN, 30 CRITICAL.
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
        sys.stdout.flush()
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except click.Abort:
        click.echo("trainwarden: interrupted", err=True)
        code = 130
    except TrainwardenError as error:
        click.echo(f"trainwarden: {error}", err=True)
        code = error.exit_code
    except BrokenPipeError:
        # The reader went away (`| head`): nothing is wrong, and nothing more can be said.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception as error:
        if os.environ.get("TRAINWARDEN_DEBUG"):
            raise
        click.echo(
            f"trainwarden: internal error, {type(error).__name__}: {error}. "
            "Set TRAINWARDEN_DEBUG=1 to see where.",
            err=True,
        )
        code = 1
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
