"""What the client starts for every event, with the event on standard input.

`python3 -I -S hook.py` would do, but where that file is gone Python leaves with status 2, which the
client takes for a refusal of everything; so hooks.json has Python open it, and fail with 1.

Leaves by `os._exit`: taking the interpreter down costs a tenth of its start.
"""

import os
import sys

SOURCE = (globals().get("__file__") or sys.argv[1]).rsplit("/", 3)[0]


def start() -> int:
    """Hear one event; the exit status."""
    sys.path.insert(0, SOURCE)
    data = os.environ.get("CLAUDE_PLUGIN_DATA")
    if data and not os.access(SOURCE, os.W_OK):  # compiling anew each time costs three starts
        sys.pycache_prefix = data + "/pycache"
    from trainwarden.guard.main import main

    return main()


def unable() -> int:
    """Say once a client session, not at every call, that this Python is too old; the status."""
    begins = b'"SessionStart"' in sys.stdin.buffer.read()
    if begins:
        sys.stderr.write("trainwarden: python3 on PATH is older than 3.8: nothing is guarded\n")
    return int(begins)


if __name__ == "__main__":
    status = start() if sys.version_info >= (3, 8) else unable()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
