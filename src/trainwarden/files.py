"""Files that are either the old ones or the new ones, and locks between processes."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from trainwarden.errors import Trouble

_REASONS = {
    errno.ENOSPC: "the disk is full: free some space and run the same command again",
    errno.EDQUOT: "the disk quota is used up: free some space and run the same command again",
    errno.EROFS: "the file system is read-only: choose a folder that can be written with --root",
    errno.EACCES: "no permission: choose a folder that can be written with --root",
    errno.ELOOP: "a symbolic link is in its place: remove that and run the same command again",
    errno.EPERM: "not permitted: choose a folder that can be written with --root",
    errno.EFBIG: "the file would be larger than this process may write",
}


def trouble(action: str, path: Path, error: OSError) -> Trouble:
    """Say what could not be done, where and what to do about it."""
    reason = _REASONS.get(error.errno or 0, error.strerror or str(error))
    return Trouble(f"cannot {action} {path}: {reason}")


def make_folder(path: Path) -> None:
    """Create a folder and its parents. Raises Trouble."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise trouble("create the folder", path, error) from error


def write_atomically(path: Path, text: str | bytes) -> None:
    """Replace `path` by `text` so that a crash at any instant leaves the old or the new file.

    Raises Trouble; then the old file stands as it was and nothing else is left.
    """
    # One name, since only the holder of the job's lock writes: what a kill left is overwritten.
    temporary = path.with_name(f".{path.name}.new")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(temporary, flags, 0o644), "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode("utf-8", "replace"))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise trouble("write", path, error) from error


def sweep(folder: Path) -> None:
    """Remove what killed writers left in a folder that nobody writes to any more."""
    for path in folder.glob(".*.new"):
        with contextlib.suppress(OSError):
            path.unlink()


@contextlib.contextmanager
def locked(path: Path, *, wait: float, purpose: str) -> Iterator[None]:
    """Hold an exclusive lock between processes; it goes with the process, however that ends.

    Raises Trouble when another process holds it for longer than `wait` seconds.
    """
    make_folder(path.parent)
    try:
        # What another left in its place must not have this process write elsewhere.
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        handle = os.open(path, flags, 0o644)
    except OSError as error:
        raise trouble("open the lock", path, error) from error
    try:
        deadline = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                    raise trouble("lock", path, error) from error
            if time.monotonic() >= deadline:
                holder = os.pread(handle, 200, 0).decode("utf-8", "replace").strip()
                raise Trouble(
                    f"{purpose}: another trainwarden is at work on this job"
                    f" ({holder or 'holder unknown'}); waited {wait:g} s. "
                    "Run it again when that one is done, or wait longer with --wait."
                )
            time.sleep(0.05)
        # A full disk must not stop a command that only wants the lock.
        with contextlib.suppress(OSError):
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"pid {os.getpid()}, {purpose}".encode(), 0)
        yield
    finally:
        os.close(handle)
