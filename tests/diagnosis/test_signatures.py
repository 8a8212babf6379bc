import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.views import read_text, view
from trainwarden.diagnosis import diagnose
from trainwarden.diagnosis.signatures import LONGEST, Signature, classify, signatures
from trainwarden.records.finding import CEILINGS, Role, Severity

ALL = {one.name: one for one in signatures()}
MATCHES = [(one.name, line) for one in ALL.values() for line in one.tests["match"]]
REJECTS = [(one.name, line) for one in ALL.values() for line in one.tests["reject"]]


@pytest.mark.parametrize(("name", "line"), MATCHES)
def test_line_that_must_match(name: str, line: str) -> None:
    assert ALL[name].matches(line)
    assert classify(line) is not None


@pytest.mark.parametrize(("name", "line"), REJECTS)
def test_look_alike_that_must_not(name: str, line: str) -> None:
    assert not ALL[name].matches(line)


@pytest.mark.parametrize("one", ALL.values(), ids=lambda one: one.name)
def test_entry_is_complete(one: Signature) -> None:
    assert one.tests["match"]
    assert one.tests["reject"]
    assert one.confidence <= CEILINGS[one.evidence_type]
    assert one.meaning.endswith(".")
    assert one.first_action
    assert not re.search(r"[*+]\)[*+]", one.pattern.pattern), "nested repeats are not linear"
    assert not re.search(r"(?<!\\)\.[*+]", one.pattern.pattern), "gaps must be bounded"


def test_names_are_unique() -> None:
    assert len(ALL) == len(signatures())


HEALTHY_LINES = [
    "step 10 | loss 2.31 | lr 3.0e-04 | grad_norm 0.91",
    "WARNING:root:NaN or Inf found in input tensor.",
    " iteration 120/ 1000 | number of skipped iterations: 0 | number of nan iterations: 0 |",
    "step 1/19560 | loss 11.009 (+nanz)| norm 15.4",
    "Using CUDA_LAUNCH_BLOCKING=0 for speed",
    "early stopping: the run is killed if loss is nan (terminate_on_nan=True)",
    "NCCL version 2.21.5+cuda12.4",
    "max_memory 79.1 GiB out of 80 GiB",
    "Saved checkpoint to out/step_100.pt",
    "0 errors, 0 warnings",
    "The model said: no connection to anything, I was only pretending to be terminated.",
    "evaluating exit criteria of the curriculum",
]


@pytest.mark.parametrize("line", HEALTHY_LINES)
def test_healthy_line_belongs_to_none(line: str) -> None:
    owner = classify(line)
    assert owner is None or owner.role is Role.ADVICE


@given(st.text(alphabet="aA0 .:=\"'[]()/\\-_errorNaN", max_size=400))
def test_any_text_is_classified_without_failing(text: str) -> None:
    classify(text)


@pytest.mark.parametrize(
    "piece", ["a", " ", "a ", "Killed ", "loss is ", "exit code ", "File ", "wandb ", "0", "("]
)
def test_patterns_stay_linear_on_repetitions(piece: str) -> None:
    line = piece * (LONGEST // len(piece))
    started = time.process_time()
    classify(line)
    assert time.process_time() - started < 2.0  # exponential patterns would take hours


def log(*lines: str) -> str:
    return "\n".join(lines) + "\n"


def steps(first: int, last: int) -> list[str]:
    return [f"step {n} | loss {3 - 0.01 * n:.4f} | lr 1.0e-04" for n in range(first, last + 1)]


def kinds(text: str) -> dict[str, tuple[str, str]]:
    found = diagnose(view(read_text(text), live=False))
    return {f.kind: (f.severity.value, f.role.value) for f in found}


def test_error_that_ended_the_run_is_critical() -> None:
    found = kinds(
        log(
            *steps(1, 12),
            "Traceback (most recent call last):",
            '  File "train.py", line 9, in <module>',
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a "
            "total capacity of 79.11 GiB",
        )
    )
    assert found == {"cuda_oom": ("critical", "initiating")}


def test_error_that_training_survived_is_no_failure() -> None:
    found = kinds(
        log(*steps(1, 12), "wandb: Network error (ConnectionError), entering retry loop.",
            *steps(13, 30))
    )  # fmt: skip
    assert all(severity == "info" for severity, _ in found.values())


def test_watchdog_follows_the_exception_of_another_rank() -> None:
    found = kinds(
        log(
            *steps(1, 12),
            "[rank1]: Traceback (most recent call last):",
            '[rank1]:   File "train.py", line 9, in <module>',
            "[rank1]: KeyError: 'labels'",
            "[rank0]:[E1 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation "
            "timeout: WorkNCCL(SeqNum=41, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600029 "
            "milliseconds before timing out.",
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
        )
    )
    assert found["crash_user_code"] == ("critical", "initiating")
    assert found["collective_hang"][1] == "cascade"
    assert found.get("rank_crash", ("", "teardown"))[1] == "teardown"


def test_watchdog_alone_is_as_far_back_as_one_sees() -> None:
    found = kinds(
        log(
            *steps(1, 12),
            "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, "
            "OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1800090 milliseconds before timing "
            "out.",
        )
    )
    assert found["collective_hang"] == ("critical", "initiating")


def test_bare_kill_is_no_proof_of_want_of_memory() -> None:
    text = log(*steps(1, 12), "Killed")
    assert kinds(text) == {"host_oom": ("warning", "initiating"), "killed": ("critical", "cascade")}
    guess = diagnose(view(read_text(text), live=False))[0]
    assert guess.confidence <= 0.5
    assert "no proof" in guess.summary
    # What a launcher says of a rank can be the launcher's own doing.
    ended = kinds(log(*steps(1, 12), "exitcode  : -9 (pid: 412)"))
    assert ended == {"killed": ("critical", "initiating")}


def test_kill_that_has_a_reason_is_not_guessed_at() -> None:
    reason = (
        "slurmstepd: error: *** JOB 99 ON n1 CANCELLED AT 2026-01-03T10:00:00 DUE TO PREEMPTION"
    )
    found = kinds(log(*steps(1, 12), reason, "Killed"))
    assert "host_oom" not in found
    assert found["preempted"] == ("critical", "initiating")


def test_exception_quotes_its_final_line() -> None:
    text = log(
        *steps(1, 12),
        "Traceback (most recent call last):",
        '  File "train.py", line 9, in <module>',
        "ValueError: shapes (3,4) and (5,6) not aligned",
    )
    (finding,) = diagnose(view(read_text(text), live=False))
    assert finding.kind == "crash_user_code"
    assert "ValueError: shapes (3,4)" in finding.summary
    assert finding.severity is Severity.CRITICAL


def test_error_line_that_recurs_and_is_survived_did_not_end_the_run() -> None:
    noise = "ERROR subprocess.CalledProcessError: Command 'x' returned non-zero exit status 9."
    lines: list[str] = []
    for block in range(4):
        lines += [*steps(10 * block + 1, 10 * block + 10), noise]
    found = kinds(log(*lines))
    assert all(severity == "info" for severity, _ in found.values())


def test_quoted_text_is_cleaned() -> None:
    text = log(*steps(1, 12), "\x1b[31mRuntimeError: CUDA out of memory. Tried to allocate 1 GiB "
               "api_key=hf_abcdefghijklmnopqrstuvwx\x1b[0m")  # fmt: skip
    (finding,) = diagnose(view(read_text(text), live=False))
    assert "\x1b" not in finding.summary
    assert "hf_abcdef" not in finding.summary


@pytest.mark.parametrize("before", ["", "  ", "[rank3]:   "])
def test_a_frame_of_a_traceback_is_no_evidence(before: str) -> None:
    frame = 'File "/opt/launcher/runner.py", line 511, in sigkill_handler SIGKILL'
    assert classify(before + frame) is None
    assert classify("received SIGKILL") is not None


RAISED = ["Traceback (most recent call last):", '  File "train.py", line 9, in <module>']


@pytest.mark.parametrize(
    ("named", "lines"),
    [
        ("disk_full", ["OSError: [Errno 28] No space left on device", *RAISED, "RuntimeError: x"]),
        ("bad_resume", ["RuntimeError: Error(s) in loading state_dict for GPT:"]),
        ("environment_mismatch", ["RuntimeError: cannot import:", "libx.so: undefined symbol: f"]),
        ("network_failure", ["torch.distributed.DistNetworkError: The client socket has timed "
                             "out after 60000ms while trying to connect to (n1, 29500)."]),
        ("gpu_hardware", ["RuntimeError: CUDA error: unspecified launch failure",
                          "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."]),
    ],
)  # fmt: skip
def test_closer_kind_stands_before_a_mere_exception(named: str, lines: list[str]) -> None:
    found = diagnose(view(read_text(log(*steps(1, 12), *RAISED, *lines)), live=False))
    assert found[0].kind == named
    assert found[0].role is Role.INITIATING


def test_shell_is_heard_at_the_end_only() -> None:
    line = "python: can't open file 'rank.py': [Errno 2] No such file or directory"
    assert kinds(log(line, *(f"preparing {n}" for n in range(12)))) == {}
    assert kinds(log("preparing", line)) == {"crash_user_code": ("critical", "initiating")}


def test_code_of_a_traceback_is_no_evidence() -> None:
    assert classify('    if n > 3: raise RuntimeError("CUDA out of memory. Tried to")') is None
