"""Lines that measure nothing but matter: errors, signals, checkpoints, endings."""

from __future__ import annotations

import re
from typing import NamedTuple


class Mark(NamedTuple):
    """What a line is: the event's kind, and whether a run does not go on after such a line."""

    kind: str
    fatal: bool = False


_CHEAP = re.compile(
    r"[Tt]raceback|[Ee]rror|ERROR|[Ee]xception|EXCEPTION|[Ii]nterrupt|[Kk]ill|SIG[A-Z]|[Ss]ignal"
    r"|[Ee]xit|CANCELL|[Cc]ancel|[Aa]bort|ABORT|core dumped|[Ff]ault|[Oo]verflow|OVERFLOW|OOM"
    r"|[Ss]av(?:ed|ing)|SAVING|[Cc]heckpoint|[Rr]esum|[Rr]estor|[Cc]omplet|[Ff]inish|[Dd]one"
    r"|[Ff]ailed|FAILED|[Tt]imed?.?out|[Pp]reempt|[Ee]vict|NCCL WARN|[Pp]anic|ended|stopped"
    r"|[Ff]atal|FATAL|[Ww]atchdog|out of memory|run_(?:stop|final)|WARN|Final |No space"
    r"|died|Ending|ENDING"
)
_RULES: tuple[tuple[Mark, re.Pattern[str]], ...] = (
    (Mark("traceback"), re.compile(r"Traceback \(most recent call last\)")),
    (
        Mark("interrupted", True),
        re.compile(
            r"(?:^|\W)KeyboardInterrupt\b|got signal: 2\b|[Rr]eceived SIGINT|SIGINT received"
            r"|[Ii]nterrupted by user|caught SIGINT|[Tt]raining interrupted|signal 2 \(SIGINT\)"
            r"|Detected KeyboardInterrupt|closing signal SIGINT"
        ),
    ),
    (
        Mark("signal", True),
        re.compile(
            r"CANCELLED AT .* DUE TO (?:TIME LIMIT|PREEMPTION|NODE FAILURE|JOB REQUEUE)"
            r"|DUE TO TIME LIMIT|DUE TO PREEMPTION|[Jj]ob has timed out|timed-out too many"
        ),
    ),
    (
        Mark("interrupted", True),
        re.compile(r"\*\*\* (?:JOB|STEP) \S+ ON .* CANCELLED AT"),
    ),
    (
        Mark("killed", True),
        re.compile(
            r"^\s*(?:.*line \d+:\s+\d+ )?Killed\b|oom-kill|OOMKilled|Out of memory: Kill"
            r"|exit(?:ed)?(?: with)?(?: code| status)?:? 137\b|RayOutOfMemoryError"
            r"|(?:was|been) killed|Killed by signal|Exceeded job memory limit|\bEvicted\b"
            r"|died with <Signals\.SIGKILL|out-of-memory handler|exit code: -9\b"
        ),
    ),
    (
        Mark("signal", True),
        re.compile(
            r"got signal: \d+|[Rr]eceived (?:signal )?(?:SIGTERM|SIGKILL|15\b|SIGUSR|SIGHUP)"
            r"|SIGTERM (?:received|report)|process received SIGTERM|[Cc]aught signal"
            r"|Signal \d+ \(SIG[A-Z]+\) received|Fatal Python error|Segmentation fault|SIGSEGV"
            r"|core dumped|Bus error|SIGABRT|terminate called|Aborted\b|died with <Signals"
        ),
    ),
    (
        Mark("exit_code", True),
        re.compile(
            r"exit(?:ed)?[ _]?(?:with )?(?:error )?(?:code|status)?\s*[:=]?\s*\(?-?[1-9]\d*\b"
            r"(?!\d*\s*(?:%|examples|epochs))|exits with return code = -?[1-9]"
            r"|returned non-zero exit status|ChildFailedError|Command exited with non-zero"
            r"|learner_exit_code: [1-9]",
        ),
    ),
    (
        Mark("exception", True),
        re.compile(
            r"(?:^|[\s:|\]])(?:[A-Za-z_][\w]*\.)*[A-Z]\w*(?:Error|Exception|Exit|Failure)"
            r"(?:\[\w+\])?(?:: |:$|\(|$)"
            r"|(?:^|\s)Exception: "
        ),
    ),
    (
        Mark("error", True),
        re.compile(
            r"CUDA (?:error|ERROR)|CUDA out of memory|cuBLAS ERROR|CUBLAS_STATUS_\w+|cudnn\w* error"
            r"|misaligned address|device-side assert|illegal memory access|Assertion .* failed"
            r"|NCCL (?:error|communicator was aborted)|[Ww]atchdog caught collective|Bus error"
            r"|\[CUDA ERROR\]|XLA error|RESOURCE_EXHAUSTED|No space left on device"
            r"|srun: error|slurmstepd: error|mpirun (?:has exited|noticed)|panic:"
            r"|Killing subprocess"
            r"|[Oo]ut [Oo]f [Mm]emory"
        ),
    ),
    (
        Mark("overflow"),
        re.compile(
            r"[Gg]rad(?:ient)? overflow|OVERFLOW!|[Oo]verflow detected|NaN or Inf found"
            r"|overflow detected, setting loss scale|reducing (?:dynamic )?loss scale"
        ),
    ),
    (
        Mark("finished"),
        re.compile(
            r"\b[Tt]raining (?:is |has )?(?:completed?|finished|done|ended|succeeded)\b"
            r"|\b(?:done|finished|completed|finish) (?:pre-?)?training\b|TRAINING (?:COMPLETE|DONE)"
            r"|`?Trainer\.fit`? stopped|run_(?:stop|final)\b"
            r"|[Ee]xperiment (?:ended|completed|finished)"
            r"|Finish(?:ed)? training in|exits successfully|Final validation metrics"
            r"|finished pretraining"
            r"|ENDING TIMING RUN|after training is done|Loss for final step|Optimization finished"
            r"|Training run (?:complete|finished)|All done"
            r"|\bAll (?:epochs|steps) (?:completed|done)"
            r"|\bepochs completed in\b|loading best weights|Run (?:finished|completed)"
            r"|wandb: Run summary|Saving the last checkpoint|[Tt]otal training time"
            r"|[Tt]raining time[: ]|^\s*[Dd]one[.!]?\s*$|[Ff]inished [Tt]raining|Trial .* completed"
        ),
    ),
    (
        Mark("checkpoint_saved"),
        re.compile(
            r"(?i)(?:\bsav(?:ed|ing)\b.*\b(?:checkpoint|model|state|weights|snapshot|params|optimizer)"
            r"|checkpoint.*\bsaved\b|successfully saved checkpoint|^SAVING |\bsave checkpoint\b"
            r"|(?:checkpoint|model)s? (?:was |were |has been )?(?:saved|written))"
        ),
    ),
    (
        Mark("resume"),
        re.compile(
            r"(?i)\bresum(?:ed|ing)\b.*(?:from|at|training|checkpoint|step|epoch)|"
            r"(?:restor|load)(?:ed|ing)\b.*\bcheckpoint\b|continuing training from"
        ),
    ),
    (
        Mark("warning"),
        re.compile(
            r"NCCL WARN|^\s*\[?WARN(?:ING)?\b|\bWARNING\b.*(?:loss|nan|memory|timeout|retry)"
        ),
    ),
    (Mark("error"), re.compile(r"\bERROR\b|\bFATAL\b|^[Ee]rror[: ]|\bfatal error\b")),
)
_HARMLESS = re.compile(
    r"Exception ignored in|warnings?\.warn|UserWarning|FutureWarning|DeprecationWarning"
    r"|ErrorHandler|error_file: <N/A>|No errors? found|0 errors|Log exceptions"
    r"|_error\b|signal_handler|except \w+|raise \w+|error_rate|[Ee]rror[_ ]?(?:rate|bars?)\b"
    r"|WordErrorRate|exit(?:ed)? with code 0|exitcode\s*: 0|[Ee]xit code:? 0"
)


def mark(text: str) -> Mark | None:
    """The kind of event that a line reports, or None. Text after a metric counts too."""
    if not _CHEAP.search(text):
        return None
    for found, pattern in _RULES:
        if pattern.search(text):
            if found.kind in {"exception", "error", "exit_code"} and _HARMLESS.search(text):
                return None
            return found
    return None
