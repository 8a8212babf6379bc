"""Lines that measure nothing but matter: errors, signals, checkpoints, endings."""

from __future__ import annotations

import re
from typing import NamedTuple


class Mark(NamedTuple):
    """What a line is: the event's kind, and whether a run does not go on after such a line."""

    kind: str
    fatal: bool = False
    sure: bool = True
    """False for an ending that is printed however the process ended."""


# Mark, words (a space as ~) of which one stands in the lower-case text of every such line, pattern.
_RULES: tuple[tuple[Mark, str, re.Pattern[str]], ...] = (
    (Mark("traceback"), "traceback", re.compile(r"Traceback \(most recent call last\)")),
    (
        Mark("interrupted", True),
        "interrupt sigint signal: ^c",
        re.compile(
            r"(?:^|\W)KeyboardInterrupt\b|got signal: 2\b|[Rr]eceived SIGINT|SIGINT received"
            r"|[Ii]nterrupted by user|caught SIGINT|[Tt]raining interrupted|signal 2 \(SIGINT\)"
            r"|Detected KeyboardInterrupt|closing signal SIGINT|^\^C\s*$"
        ),
    ),
    (
        Mark("signal", True),
        "time~limit timed preempt node~failure requeue",
        re.compile(
            r"CANCELLED AT .* DUE TO (?:TIME LIMIT|PREEMPTION|NODE FAILURE|JOB REQUEUE)"
            r"|DUE TO TIME LIMIT|DUE TO PREEMPTION|[Jj]ob has timed out|timed-out too many"
        ),
    ),
    (
        Mark("interrupted", True),
        "cancelled",
        re.compile(r"\*\*\* (?:JOB|STEP) \S+ ON .* CANCELLED AT"),
    ),
    (
        Mark("killed", True),
        "kill oom memory 137 evicted",
        re.compile(
            r"^\s*(?:.*line \d+:\s+\d+ )?Killed\b|^\[\d+\]\s.*\bkilled\b"
            r"|oom-kill|OOMKilled|Out of memory: Kill"
            r"|exit(?:ed)?(?: with)?(?: code| status)?:? 137\b|RayOutOfMemoryError"
            r"|(?:was|been) killed|Killed by signal|Exceeded job memory limit|\bEvicted\b"
            r"|died with <Signals\.SIGKILL|out-of-memory handler|exit code: -9\b"
        ),
    ),
    (
        Mark("signal", True),
        "signal sig fatal fault abort dump bus terminate",
        re.compile(
            r"^\s*(?:.*line \d+:\s+\d+ )?Terminated\b(?!:)|got signal: \d+"
            r"|[Rr]eceived (?:signal )?(?:SIGTERM|SIGKILL|15\b|SIGUSR|SIGHUP)"
            r"|SIGTERM (?:received|report)|process received SIGTERM|[Cc]aught signal"
            r"|Signal \d+ \(SIG[A-Z]+\) received|Fatal Python error|Segmentation fault|SIGSEGV"
            r"|core dumped|Bus error|SIGABRT|terminate called|Aborted\b|died with <Signals"
        ),
    ),
    (
        Mark("exit_code", True),
        "exit returned childfailed",
        re.compile(
            r"exit(?:ed)?[ _]?(?:with )?(?:error )?(?:code|status)?\s*(?:[:=]\s*)?\(?-?[1-9]\d*\b"
            r"(?!\d*\s*(?:%|examples|epochs))|exits with return code = -?[1-9]"
            r"|returned non-zero exit status|ChildFailedError|Command exited with non-zero"
            r"|learner_exit_code: [1-9]",
        ),
    ),
    (
        Mark("exception", True),
        "error exception exit failure",
        re.compile(
            r"(?:^|[\s:|\]])(?:[A-Za-z_][\w]*\.)*[A-Z]\w*(?:Error|Exception|Exit|Failure)"
            r"(?:\[\w+\])?(?:: |:$|\(|$)"
            r"|(?:^|\s)Exception: "
        ),
    ),
    (
        Mark("error", True),
        "error cublas cudnn misaligned device-side illegal assertion communicator watchdog"
        " exhausted no~space mpirun panic: of~memory",
        re.compile(
            r"CUDA (?:error|ERROR)|CUDA out of memory|cuBLAS ERROR|CUBLAS_STATUS_\w+|cudnn\w* error"
            r"|misaligned address|device-side assert|illegal memory access|Assertion .* failed"
            r"|NCCL (?:error|communicator was aborted)|[Ww]atchdog caught collective|Bus error"
            r"|\[CUDA ERROR\]|XLA error|RESOURCE_EXHAUSTED|No space left on device"
            r"|srun: error|slurmstepd: error|mpirun (?:has exited|noticed)|panic:"
            r"|[Oo]ut [Oo]f [Mm]emory"
        ),
    ),
    (
        Mark("overflow"),
        "overflow nan or inf reducing",
        re.compile(
            r"[Gg]rad(?:ient)? overflow|OVERFLOW!|[Oo]verflow detected|NaN or Inf found"
            r"|overflow detected, setting loss scale|reducing (?:dynamic )?loss scale"
        ),
    ),
    (
        Mark("finished"),
        "train trainer run_ experiment successfully final done finish ending optimization epochs"
        " weights summary trial best stopping",
        re.compile(
            r"\b[Tt]raining (?:is |has )?(?:[Cc]ompleted?|[Ff]inished|[Dd]one|ended|stops"
            r"|succeeded)\b"
            r"|\b(?:done|finished|completed|finish) (?:pre-?)?training\b(?! it \d)"
            r"|TRAINING (?:COMPLETE|DONE)"
            r"|`?Trainer\.fit`? stopped|run_(?:stop|final)\b"
            r"|[Ee]xperiment (?:ended|completed|finished)"
            r"|Finish(?:ed)? training in|exits successfully|Final validation metrics"
            r"|finished pretraining"
            r"|ENDING TIMING RUN|after training is done|Loss for final step|Optimization finished"
            r"|Training run (?:complete|finished)|All done"
            r"|\bAll (?:epochs|steps) (?:completed|done)"
            r"|\*\*\* Best metric|^bestIteration = |\b[Bb]est iteration(?: is)?:"
            r"|\bepochs completed in\b|loading best weights|Run (?:finished|completed)"
            r"|Saving the last checkpoint|[Tt]otal training time(?!.* on hooks)"
            r"|[Tt]raining time[: ](?!.* on hooks)|^\s*[Dd]one[.!]?\s*$"
            r"|[Ff]inished [Tt]raining(?! it \d)|Trial .* completed"
        ),
    ),
    (
        Mark("finished", sure=False),
        "wandb real exit~status exit~code elapsed hooks",
        re.compile(
            r"wandb: Run summary|^real\s+\d+m[\d.]+s\s*$|\bExit status: 0\b|exit code 0\s*$"
            r"|Total training time: .* on hooks"  # detectron2, after an error too
            r"|^\d+(?:\.\d+)?user \d+(?:\.\d+)?system .*elapsed"
        ),
    ),
    (
        Mark("checkpoint_saved"),
        "sav checkpoint written",
        re.compile(
            r"(?i)(?:\bsav(?:ed|ing)\b.*\b(?:checkpoint|model|state|weights|snapshot|params|optimizer)"
            r"|checkpoint.*\bsaved\b|successfully saved checkpoint|^SAVING |\bsave checkpoint\b"
            r"|(?:checkpoint|model)s? (?:was |were |has been )?(?:saved|written))"
        ),
    ),
    (
        Mark("resume"),
        "resum restor load continuing",
        re.compile(
            r"(?i)\bresum(?:ed|ing)\b.*(?:from|at|training|checkpoint|step|epoch)|"
            r"(?:restor|load)(?:ed|ing)\b.*\bcheckpoint\b|continuing training from"
        ),
    ),
    (
        Mark("warning"),
        "warn",
        re.compile(
            r"NCCL WARN|^\s*\[?WARN(?:ING)?\b|\bWARNING\b.*(?:loss|nan|memory|timeout|retry)"
        ),
    ),
    (
        Mark("error"),
        "error fatal",
        re.compile(r"\bERROR\b|\bFATAL\b|^[Ee]rror[: ]|\bfatal error\b"),
    ),
)
_HARMLESS = re.compile(
    r"Exception ignored in|warnings?\.warn|UserWarning|FutureWarning|DeprecationWarning"
    r"|ErrorHandler|error_file: <N/A>|No errors? found|0 errors|Log exceptions"
    r"|_error\b|signal_handler|except \w+|raise \w+|error_rate|[Ee]rror[_ ]?(?:rate|bars?)\b"
    r"|WordErrorRate|exit(?:ed)? with code 0|exitcode\s*: 0|[Ee]xit code:? 0"
    # What trainers ask of the machine and the code's version; they go on without an answer.
    r"|Command '\[?'?(?:nvidia-smi|rocm-smi|git|nvcc|lscpu|hostname|which)\b"
)


_TRIED = tuple(
    (found, tuple(word.replace("~", " ") for word in words.split()), pattern)
    for found, words, pattern in _RULES
)


def mark(text: str, low: str | None = None) -> Mark | None:
    """The kind of event that a line reports, or None. `low` is the text in lower case."""
    if low is None:
        low = text.lower()
    for found, words, pattern in _TRIED:
        for word in words:
            if word in low:
                break
        else:
            continue
        if pattern.search(text):
            if found.kind in {"exception", "error", "exit_code"} and _HARMLESS.search(text):
                return None
            return found
    return None
