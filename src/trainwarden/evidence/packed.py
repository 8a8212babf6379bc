"""Text of a log as it is or packed: told by its first bytes, unpacked as it is read."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import zlib
from pathlib import Path
from typing import IO

SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
"""What packed files are named by; how they are read their first bytes tell."""
_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\0": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "a zip archive",
    b"\x04\x22\x4d\x18": "lz4",
}
_READ = frozenset({"gzip", "bzip2", "xz", "zstd"})
LONGEST_MAGIC = max(map(len, _MAGIC))
_XZ_MEMORY = 256 << 20
_TAR = slice(257, 262)


def packing(head: bytes) -> str | None:
    """How a file that begins with `head` is packed; None for one that is not."""
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)


def open_log(path: Path) -> io.BufferedIOBase:
    """A log's text for reading, unpacked on the way. Raises OSError.

    Also where it is packed in a way that is not read here, or holds an archive of files.
    """
    file = path.open("rb")
    try:
        kind = packing(file.read(LONGEST_MAGIC))
        file.seek(0)
        if kind is None:
            return file
        if kind not in _READ:
            raise OSError(errno.EINVAL, f"packed ({kind}): unpack it first", str(path))
        unpacked = Unpacked(file, kind)
        start = unpacked.read(_TAR.stop)
        if start[_TAR] == b"ustar":
            raise OSError(errno.EINVAL, "an archive of files: unpack it first", str(path))
        if not start and unpacked.damage:
            raise OSError(errno.EINVAL, f"cannot be unpacked: {unpacked.damage}", str(path))
        unpacked.seek(0)
        return unpacked
    except BaseException:
        file.close()
        raise


def _opened(file: IO[bytes], kind: str) -> tuple[io.BufferedIOBase, type[Exception]]:
    """The text of a packed file, and what is raised where its data is damaged."""
    if kind == "gzip":
        return gzip.GzipFile(fileobj=file, mode="rb"), zlib.error
    if kind == "bzip2":
        return bz2.BZ2File(file), ValueError
    if kind == "xz":
        # A header may ask for gigabytes before a byte comes out.
        lzma.LZMADecompressor(memlimit=_XZ_MEMORY).decompress(file.read(1024), 1)
        file.seek(0)
        return lzma.LZMAFile(file), lzma.LZMAError
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError:  # Python 3.13 and older
        try:
            from backports import zstd
        except ImportError as error:
            needed = "packed with zstd, which needs: pip install backports.zstd"
            raise OSError(errno.ENOTSUP, needed) from error
    return zstd.ZstdFile(file), zstd.ZstdError


class Unpacked(io.BufferedIOBase):
    """The text of a packed file. It ends where no more can be unpacked, and says why."""

    def __init__(self, file: io.BufferedReader, kind: str) -> None:
        self.cut = False
        """Whether the packed data ends before it should: it was cut off, or still grows."""
        self.damage = ""
        """What is wrong with the data from where reading ended; empty where nothing is."""
        self._file, self._kind = file, kind
        self._at = 0
        self._text: io.BufferedIOBase | None = None
        self._failure: type[Exception] = lzma.LZMAError

    def read(self, size: int | None = -1, /) -> bytes:
        """At most `size` bytes, fewer at the end alone."""
        parts: list[bytes] = []
        left = -1 if size is None else size
        while left and not (self.cut or self.damage):
            data = self._some(left)
            if not data:
                break
            parts.append(data)
            left -= len(data) if left > 0 else 0
        whole = b"".join(parts)
        self._at += len(whole)
        return whole

    def _some(self, size: int) -> bytes:
        """What comes next, whatever is given at once."""
        try:
            if self._text is None:
                self._text, self._failure = _opened(self._file, self._kind)
            return self._text.read1(size)
        except EOFError:
            self.cut = True
        except OSError as error:
            if error.errno is not None:
                raise
            self.damage = str(error)
        except (self._failure, MemoryError) as error:
            self.damage = str(error) or type(error).__name__
        return b""

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to an offset of the text: back means from its beginning."""
        if whence != io.SEEK_SET:
            raise io.UnsupportedOperation("a packed log is sought from its beginning alone")
        if offset < self._at:
            self._file.seek(0)
            self._text, self._at, self.cut, self.damage = None, 0, False, ""
        while self._at < offset and self.read(min(1 << 20, offset - self._at)):
            pass
        return self._at

    def tell(self) -> int:
        """The offset in the text."""
        return self._at

    def fileno(self) -> int:
        """That of the packed file."""
        return self._file.fileno()

    def readable(self) -> bool:
        """Always."""
        return True

    def close(self) -> None:
        """Close the packed file as well."""
        self._file.close()
        super().close()
