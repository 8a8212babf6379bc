"""The two ways in which a command ends without an answer."""

from __future__ import annotations


class TrainwardenError(Exception):
    """Told to the user as one message, without a traceback."""

    exit_code = 1


class Refusal(TrainwardenError):
    """The procedure or the input does not allow it: says what is missing and how to mend it."""

    exit_code = 2


class Trouble(TrainwardenError):
    """The machine does not allow it: a full disk, a held lock, a file in the way."""

    exit_code = 1
