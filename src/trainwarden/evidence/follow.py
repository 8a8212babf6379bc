"""Follow a growing log from where it last stood, through rotation, truncation and replacement."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from trainwarden.evidence import ahead, stores
from trainwarden.evidence.opened import (
    CHUNK,
    Kept,
    Position,
    Source,
    digest,
    late,
    moved_since,
    open_all,
)
from trainwarden.evidence.packed import Unpacked
from trainwarden.evidence.pieces import attempt_of
from trainwarden.evidence.run_files import phase_of
from trainwarden.metrics.formats import LineFormat
from trainwarden.metrics.reader import LogReader
from trainwarden.metrics.readers import HEAD, Reader, RunReader, reader_for
from trainwarden.metrics.reading import Piece, Reading

TRIES = 4
"""A log that is rotated just now is looked at so often."""


@dataclass
class Followed:
    """A reader brought up to the present, and where it stands now."""

    reader: Reader
    position: Position
    complete: bool = True
    """False where the time ran out before the end."""
    settled: bool = False
    """Whether the file had rested long enough for its last line to be taken as whole."""
    over: bool = False
    """Whether it had rested so long that nothing more is to be expected."""
    kept: tuple[Kept, ...] = ()
    """The files read, oldest first; the last one is that of the position."""
    remarks: tuple[str, ...] = ()
    """What is worth knowing of the files as they are now."""
    problems: tuple[str, ...] = ()
    """What of them could not be read."""

    def reading(self) -> Reading:
        """What was read, a last line without an end included."""
        self.reader.finish(complete=self.settled, over=self.over)
        reading = self.reader.reading
        pieces = tuple(kept.piece for kept in self.kept)
        plain = len(pieces) <= 1 and all(one == (reading.file, 0, 0) for one in pieces)
        notes = [*reading.notes, *self.remarks]
        return replace(reading, pieces=() if plain else pieces, notes=notes)


def follow(
    path: Path,
    cached: Followed | None = None,
    formats: Sequence[LineFormat] | None = None,
    deadline: float | None = None,
    until: int | None = None,
) -> Followed:
    """Read what is new in a log since `cached`; all of it without one. Raises OSError.

    `deadline` is of `time.monotonic`; `until` is the offset where reading ends. At first older
    pieces of the log are read before it. A file rotated away since (packed or not) is read to its
    end first where it is still there; one truncated or replaced by other content is read from
    its beginning. What is done with the files while they are read does not matter: they are opened
    once.
    """
    if stores.is_store(path):
        stored, whole = stores.follow(path, cached and cached.reader, deadline)
        return Followed(stored, Position(stored.position, 0, 0, "", 0), whole)
    for tries_left in reversed(range(TRIES)):
        with ExitStack() as opened:
            sources, problems = open_all(path, opened, deadline)
            if tries_left and moved_since(path, sources):
                continue
            return _Following(path, sources, formats, deadline, until, problems).from_(cached)
    raise AssertionError("the last try is taken as it is")


@dataclass
class _Following:
    """One look at a log whose files are open."""

    path: Path
    sources: list[Source]
    formats: Sequence[LineFormat] | None
    deadline: float | None
    until: int | None
    problems: list[str]
    remarks: list[str] = field(default_factory=list)

    def from_(self, cached: Followed | None) -> Followed:
        """Read on from where an earlier look ended."""
        filled = [source for source in self.sources if source.head] or self.sources[-1:]
        fresh = self._reader(filled[0].head)
        if not isinstance(fresh, LogReader):
            # A binary file is by itself.
            filled = self.sources[-1:]
        if cached is None or not isinstance(cached.reader, type(fresh)):
            return self._read(fresh, filled, 0, [])
        reader, kept = cached.reader, list(cached.kept)
        position = cached.position
        local = position.offset - (kept[-1].piece.begin if kept else 0)
        at = _found(filled, position, local)
        if at is None:
            return self._anew(fresh, filled, cached)
        source = filled[at]
        earlier = _located(kept[:-1], filled[:at])
        newest = source is filled[-1]
        packed = source.as_it_is() if source.packed else ""
        if newest and cached.complete and packed and packed == position.packed:
            kept = [*earlier, _kept(source, position.offset - local)]
            return replace(cached, kept=tuple(kept))
        moved = (source.status.st_ino, source.status.st_dev) != (position.inode, position.device)
        if newest and source.file == self.path and moved and not source.packed:
            reader.note("the file was replaced by a copy that goes on")
        return self._read(reader, filled[at:], local, earlier, rotated=True)

    def _anew(self, fresh: RunReader, filled: list[Source], cached: Followed) -> Followed:
        """The file is another one now: go on where it plainly continues, else begin again."""
        position, known = cached.position, cached.reader
        if isinstance(known, LogReader) and len(filled) > 1 and _goes_on(known, filled[0].head):
            known.note("a part of the log between was rotated away before it was read")
            gone = [replace(one, piece=one.piece._replace(file="")) for one in cached.kept]
            known.next_file()
            return self._read(known, filled, 0, gone)
        inodes = {(source.status.st_ino, source.status.st_dev) for source in filled}
        same = (position.inode, position.device) in inodes
        kind = "truncated" if same else "replaced"
        fresh.note(f"the file was {kind}: it was read from its beginning")
        return self._read(fresh, filled, 0, [])

    def _reader(self, head: bytes) -> RunReader:
        return reader_for(str(self.path), head[:HEAD], self.formats, phase_of(self.path))

    def _read(
        self,
        reader: RunReader,
        sources: list[Source],
        local: int,
        earlier: list[Kept],
        rotated: bool = False,
    ) -> Followed:
        """Feed the files to the reader, the first one from `local` on."""
        kept, complete = list(earlier), True
        begin = reader.position - local
        for index, source in enumerate(sources):
            if index and isinstance(reader, LogReader):
                before = sources[index - 1].file
                process = attempt_of(before) == attempt_of(source.file)
                reader.next_file(source.head if process else b"")
                if rotated:
                    reader.note(f"rotated: {before.name} was read to its end, then the new file")
                begin, local = reader.position, 0
            kept.append(_kept(source, begin))
            complete = self._feed(source, reader, local)
            if not complete or (self.until is not None and reader.position >= self.until):
                sources = sources[: index + 1]
                break
        if len(sources) > 1 and not rotated:
            names = ", ".join(_name(source, self.path) for source in sources[:-1][-3:])
            self.remarks.append(f"read together with {len(sources) - 1} older: {names}")
        last = sources[-1]
        local = reader.position - kept[-1].piece.begin
        position = Position(
            reader.position,
            last.status.st_ino,
            last.status.st_dev,
            kept[-1].fingerprint,
            kept[-1].fingerprint_length,
            before="" if last.packed else last.before(local),
            packed=last.as_it_is() if last.packed else "",
        )
        return Followed(
            reader,
            position,
            complete,
            kept=tuple(kept),
            remarks=tuple(self.remarks),
            problems=tuple(self.problems),
        )

    def _feed(self, source: Source, reader: RunReader, local: int) -> bool:
        """Feed a file from a place in its text to its end; whether the end was reached."""
        stream, start = source.stream, source.skipped + local
        if isinstance(stream, Unpacked):
            stream.seek(0)
            while (left := start - stream.tell()) > 0 and stream.read(min(CHUNK, left)):
                if late(self.deadline):
                    return False
        else:
            stream.seek(start)
            far = isinstance(stream, io.BufferedReader) and ahead.pays(stream, start)
            if far and self.until is None and isinstance(reader, LogReader):
                return ahead.read_ahead(stream, reader, self.deadline)
        while data := stream.read(self._most(reader)):
            reader.feed(data)
            if late(self.deadline):
                return False
        if isinstance(stream, Unpacked):
            name = source.file.name
            if stream.cut:
                self.remarks.append(f"{name} ends within packed data: read as far as it goes")
            if stream.damage:
                self.problems.append(
                    f"{source.file}: damaged ({stream.damage}): read as far as it could be unpacked"
                )
        return True

    def _most(self, reader: RunReader) -> int:
        return CHUNK if self.until is None else max(0, min(CHUNK, self.until - reader.position))


def _name(source: Source, path: Path) -> str:
    try:
        return str(source.file.relative_to(path.parent))
    except ValueError:  # of an earlier attempt
        return "/".join(source.file.parts[-3:])


def _found(sources: list[Source], position: Position, local: int) -> int | None:
    """Which of the files is the one that reading stood in; the newest of those it may be."""
    ways: tuple[Callable[[Source], bool], ...] = (
        lambda source: not source.packed,
        lambda source: source.packed,
    )
    for fits in ways:
        for index in reversed(range(len(sources))):
            if fits(sources[index]) and sources[index].holds(position, local):
                return index
    if len(sources) == 1 and position.fingerprint_length == 0 == position.offset:
        return 0  # it was empty so far
    return None


def _located(known: list[Kept], sources: list[Source]) -> list[Kept]:
    """Pieces read earlier, with the names that their files have now."""
    found: list[Kept] = []
    left = list(sources)
    for one in reversed(known):
        file = ""
        for index in reversed(range(len(left))):
            if left[index].begins_as(one):
                file = str(left[index].file)
                del left[index:]
                break
        found.append(replace(one, piece=one.piece._replace(file=file)))
    return found[::-1]


def _kept(source: Source, begin: int) -> Kept:
    piece = Piece(str(source.file), begin, source.skipped)
    return Kept(piece, digest(source.head), len(source.head))


def _goes_on(reader: LogReader, head: bytes) -> bool:
    """Whether a file begins past the steps that were read."""
    fresh = LogReader(reader.file, reader.formats)
    fresh.feed(head)
    steps = [one.first.step for one in fresh.reading.series.values() if one.first]
    last = reader.reading.last_step
    return last is not None and bool(steps) and min(steps) > last
