"""A file system that is small, for runs that fill it.

A tmpfs in a mount namespace of its own where the system allows one (user namespaces or root);
otherwise RLIMIT_FSIZE, under which a write beyond the limit fails with "File too large" instead of
"No space left on device". Which one it was is told, since the two leave other texts in a log.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Disk:
    """What goes before a command that is to see the file system, and what it is."""

    prefix: tuple[str, ...] = ()
    kind: str = ""


_LIMIT = (
    "import os, resource, sys; n = int(sys.argv[1]);"
    "resource.setrlimit(resource.RLIMIT_FSIZE, (n, n)); os.execvp(sys.argv[2], sys.argv[2:])"
)
"""Python ignores SIGXFSZ, so that the write fails instead of ending the process."""


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Disk]:
    """A file system of `size` bytes at `folder`; with 0, the one that is there."""
    if not size:
        yield Disk()
        return
    folder.mkdir(parents=True)
    mount = f'mount -t tmpfs -o size={size} none "$1" && echo ready && exec cat'
    holder = subprocess.Popen(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert holder.stdout is not None
        if holder.stdout.readline().strip() == b"ready":
            enter = ("nsenter", "--target", str(holder.pid), "--user", "--mount")
            # The folder that is current outside would lead around the mount.
            inside = ("--preserve-credentials", "env", "-C", str(folder.parent))
            yield Disk(
                (*enter, *inside),
                f"tmpfs of {size} bytes in a mount namespace",
            )
        else:
            # A single file cannot be as large as the disk, so the limit is a part of it.
            limit = size // 4
            yield Disk(
                (sys.executable, "-c", _LIMIT, str(limit)),
                f"RLIMIT_FSIZE of {limit} bytes (no mount is allowed here)",
            )
    finally:
        holder.kill()
        holder.communicate()
