"""`python -m trainwarden`; `bin/trainwarden` starts this file with a Python that it chose."""

import os
import sys

if __name__ == "__main__":
    if not __package__:
        # Started as a file: its own package comes first, whatever else is installed.
        sys.path[0] = __file__.rsplit("/", 2)[0]
        sys.argv[0] = "trainwarden"
    try:
        from trainwarden.faces.cli import main
    except ModuleNotFoundError as lost:
        kept = os.environ.get("TRAINWARDEN_DATA", "")
        sys.exit(
            f"trainwarden: {sys.executable} has no {lost.name} any more: remove {kept}/python, and "
            "the next command finds or sets up another Python"
        )
    main()
