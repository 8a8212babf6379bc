"""Whether a checkpoint's file is whole, told from its size, its beginning and its end.

Nothing is unpickled or loaded: at most a header and the last 66 KB of a file are read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import BinaryIO

WEIGHTS = frozenset(
    {
        ".pt", ".pth", ".bin", ".safetensors", ".ckpt", ".npz", ".npy", ".distcp", ".h5", ".hdf5",
        ".keras", ".msgpack", ".pdparams", ".pdopt", ".pkl", ".pickle", ".tar", ".index",
        ".params", ".joblib", ".gguf", ".weights",
    }
)  # fmt: skip
"""Suffixes of files that hold a run's state."""

_HEADER_LIMIT = 4 * 1024 * 1024
_END_OF_ZIP = b"PK\x05\x06"


def file_problem(path: Path, size: int) -> str | None:
    """What is wrong with a file of `size` bytes, or None. Raises OSError if it can't be read.

    Known are safetensors (header and tensors must fit into the file), zip archives as torch and
    numpy write them (the central directory, written last, must be there), HDF5 (the end of file
    that its superblock states), and files that begin with zeros only, as a crash leaves those
    whose data never reached the disk.
    """
    if size == 0:
        return "has zero bytes"
    with path.open("rb") as file:
        head = file.read(512)
        if not any(head):
            return "begins with zeros only"
        if path.suffix.lower() == ".safetensors":
            return _safetensors(file, head, size)
        if head.startswith(b"PK\x03\x04"):
            return _zip(file, size)
        if head.startswith(b"\x89HDF\r\n\x1a\n"):
            return _hdf5(head, size)
        if path.suffix.lower() in {".npz", ".keras"}:
            return "does not begin as a zip archive"
    return None


def _safetensors(file: BinaryIO, head: bytes, size: int) -> str | None:
    """Eight bytes with the header's length, the header in JSON, then the tensors."""
    length = int.from_bytes(head[:8], "little")
    if size < 8 or 8 + length > size:
        return f"is truncated: a header of {length} bytes in a file of {size}"
    if head[8:9] != b"{":
        return "has no safetensors header"
    if length > _HEADER_LIMIT:
        return None
    file.seek(8)
    try:
        header = json.loads(file.read(length))
        ends = [
            entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"
        ]
        end = 8 + length + max(ends, default=0)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        return "has a safetensors header that cannot be read"
    if isinstance(end, int) and end > size:
        return f"is truncated: its header tells of {end} bytes, it has {size}"
    return None


def _zip(file: BinaryIO, size: int) -> str | None:
    # The end record is followed by a comment of at most 65535 bytes.
    start = max(0, size - 65535 - 22)
    file.seek(start)
    tail = file.read(size - start)
    at = tail.rfind(_END_OF_ZIP)
    if at < 0 or at + 22 > len(tail):
        return "is truncated: the archive's central directory is missing"
    length = int.from_bytes(tail[at + 12 : at + 16], "little")
    offset = int.from_bytes(tail[at + 16 : at + 20], "little")
    if offset != 0xFFFFFFFF and length != 0xFFFFFFFF and offset + length > start + at:
        return "is damaged: the archive's central directory lies beyond its end"
    return None


def _hdf5(head: bytes, size: int) -> str | None:
    if len(head) < 48:
        return "is truncated: it ends within its superblock"
    version = head[8]
    if version in (0, 1) and head[13] == 8:
        at = 24 + 16 + (4 if version == 1 else 0)
    elif version in (2, 3) and head[9] == 8:
        at = 12 + 16
    else:
        return None
    end = int.from_bytes(head[at : at + 8], "little")
    if end > size:
        return f"is truncated: its superblock tells of {end} bytes, it has {size}"
    return None
