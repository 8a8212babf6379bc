import pytest

from support.views import read_text, view
from trainwarden.diagnosis.error_class import CLASSES, error_class_of

TRAINED = [f"step {n} | loss {3 - 0.01 * n:.4f} | lr 1.0e-04 | grad_norm 0.9" for n in range(1, 31)]
RAISED = [
    "Traceback (most recent call last):",
    '  File "/job/train.py", line 88, in <module>',
    "    main()",
    '  File "/job/train.py", line 61, in main',
    "    loss = model(batch)",
]
LAUNCHED = [
    "W0101 10:00:01.1 71 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 72 "
    "closing signal SIGTERM",
    "E0101 10:00:02.1 71 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: "
    "1) local_rank: 0 (pid: 71) of binary: /usr/bin/python",
    "Traceback (most recent call last):",
    '  File "/usr/bin/torchrun", line 8, in <module>',
    "    sys.exit(main())",
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
]

ENDS = {
    "cuda_oom": [
        [
            *RAISED,
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a "
            "total capacity of 39.39 GiB of which 1.20 GiB is free.",
        ],
        [
            *RAISED,
            "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.76 GiB "
            "total capacity; 9.71 GiB already allocated)",
        ],
        [
            *RAISED,
            "RuntimeError: CUDA error: out of memory",
            "CUDA kernel errors might be asynchronously reported at some other API call, so the "
            "stacktrace below might be incorrect.",
            "For debugging consider passing CUDA_LAUNCH_BLOCKING=1.",
        ],
        ["jax.errors.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying"],
        [*RAISED, "tensorflow.errors.ResourceExhaustedError: OOM when allocating tensor"],
        [*RAISED, "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling"],
        [
            "[rank1]: " + line
            for line in [*RAISED, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2"]
        ]
        + LAUNCHED,
    ],
    "nccl": [
        [
            "[rank3]:[E101 10:00:00 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective "
            "operation timeout: WorkNCCL(SeqNum=41, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
            "Timeout(ms)=600000) ran for 600029 milliseconds before timing out.",
            "[rank3]:[E101 10:00:00 ProcessGroupNCCL.cpp:630] To avoid data inconsistency, we are "
            "taking the entire process down.",
            "terminate called after throwing an instance of 'c10::DistBackendError'",
            "  what():  [PG 0 Rank 3] NCCL watchdog thread terminated with exception",
            "Fatal Python error: Aborted",
        ],
        [
            *RAISED,
            "torch.distributed.DistBackendError: NCCL error in: /build/ProcessGroupNCCL.cpp:1331, "
            "unhandled system error, NCCL version 2.18.1",
            "ncclSystemError: System call (e.g. socket, malloc) or external library call failed",
            "Last error:",
            "Error while creating shared memory segment /dev/shm/nccl-abc (size 9637888)",
        ],
        [*RAISED, "RuntimeError: NCCL communicator was aborted on rank 1."],
        [*RAISED, "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:825, invalid usage"],
        [
            *RAISED,
            "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running "
            "collective: CollectiveFingerPrint",
        ],
        ["node1:812:901 [0] socket.h:406 NCCL WARN Connect to 10.0.0.2<4413> failed : Timed out"],
    ],
    "cuda_runtime": [
        [
            "../aten/src/ATen/native/cuda/Indexing.cu:1146: indexSelectLargeIndex: block: "
            "[12,0,0], thread: [32,0,0] Assertion `srcIndex < srcSelectDimSize` failed.",
            *RAISED,
            "RuntimeError: CUDA error: device-side assert triggered",
            "CUDA kernel errors might be asynchronously reported at some other API call.",
        ],
        [*RAISED, "RuntimeError: CUDA error: an illegal memory access was encountered"],
        [*RAISED, "RuntimeError: CUDA error: unspecified launch failure"],
        [*RAISED, "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"],
        [*RAISED, "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublas`"],
        [*RAISED, "RuntimeError: CUDA error: invalid device ordinal"],
        [*RAISED, "RuntimeError: CUDA error: no kernel image is available for execution"],
        [*RAISED, "torch.AcceleratorError: CUDA error: misaligned address"],
        [*RAISED, "RuntimeError: CUDA error: uncorrectable ECC error encountered"],
        [*RAISED, "RuntimeError: CUDA error: invalid configuration argument"],
        [*RAISED, "RuntimeError: No CUDA GPUs are available"],
    ],
    "ram_oom": [
        [*RAISED, "MemoryError"],
        [*RAISED, "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 74.5 GiB"],
        [
            *RAISED,
            "RuntimeError: [enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't "
            "allocate memory: you tried to allocate 8000000000 bytes. Error code 12 (Cannot "
            "allocate memory)",
        ],
        [*RAISED, "OSError: [Errno 12] Cannot allocate memory"],
        [
            "terminate called after throwing an instance of 'std::bad_alloc'",
            "  what():  std::bad_alloc",
            "Aborted (core dumped)",
        ],
        [*RAISED, "MemoryError: Unable to allocate 12.0 GiB for an array"],
    ],
    "segfault": [
        ["Segmentation fault (core dumped)"],
        [
            "Fatal Python error: Segmentation fault",
            "",
            "Current thread 0x00007f12 (most recent call first):",
            '  File "/job/train.py", line 61 in main',
        ],
        ["/job/run.sh: line 4:  2211 Segmentation fault      (core dumped) python train.py"],
        [
            "E0101 10:00:02.1 71 torch/distributed/elastic/multiprocessing/api.py:869] failed "
            "(exitcode: -11) local_rank: 0 (pid: 71) of binary: /usr/bin/python",
            "  traceback : Signal 11 (SIGSEGV) received by PID 71",
        ],
        ["*** SIGSEGV received at time=1700000000 on cpu 3 ***"],
        ["double free or corruption (!prev)", "Aborted (core dumped)"],
    ],
    "file_not_found": [
        [*RAISED, "FileNotFoundError: [Errno 2] No such file or directory: 'data/train.bin'"],
        ["python: can't open file '/job/trian.py': [Errno 2] No such file or directory"],
        [*RAISED, "NotADirectoryError: [Errno 20] Not a directory: 'data/train.bin/x'"],
        ["cat: config.yaml: No such file or directory"],
        [
            "(TaskRunner pid=71) " + line
            for line in [*RAISED, "FileNotFoundError: Unable to find 'data/x.jsonl'"]
        ],
    ],
    "permission": [
        [*RAISED, "PermissionError: [Errno 13] Permission denied: '/shared/ckpt/step_30.pt'"],
        ["bash: ./launch.sh: Permission denied"],
        [*RAISED, "PermissionError: [Errno 1] Operation not permitted: '/dev/shm/x'"],
        [*RAISED, "OSError: [Errno 13] Permission denied: '/root/.cache/hub'"],
    ],
    "missing_module": [
        [*RAISED, "ModuleNotFoundError: No module named 'flash_attn'"],
        [*RAISED, "ImportError: cannot import name 'LlamaAttn' from 'transformers.models' (x.py)"],
        ["/usr/bin/python: No module named deepspeed"],
        [
            *RAISED,
            "ImportError: libcudnn.so.8: cannot open shared object file: No such file or directory",
        ],
        [*RAISED, "ImportError: /job/x.so: undefined symbol: _ZN3c104cuda9SetDeviceEi"],
    ],
    "div_zero": [
        [*RAISED, "ZeroDivisionError: division by zero"],
        [*RAISED, "ZeroDivisionError: float division by zero"],
        [*RAISED, "ZeroDivisionError: integer division or modulo by zero"],
        ["Floating point exception (core dumped)"],
        [*RAISED, "RuntimeError: ZeroDivisionError"],
    ],
    "device_mismatch": [
        [
            *RAISED,
            "RuntimeError: Expected all tensors to be on the same device, but found at least two "
            "devices, cuda:0 and cpu! (when checking argument for argument mat1 in method "
            "wrapper_CUDA_addmm)",
        ],
        [
            *RAISED,
            "RuntimeError: Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) "
            "should be the same",
        ],
        [*RAISED, "RuntimeError: indices should be either on cpu or on the same device as it"],
        [*RAISED, "RuntimeError: Expected object of device type cuda but got device type cpu"],
        ["ValueError: Pointer argument (at 0) cannot be accessed: tensor is on a different device"],
    ],
    "nan_loss": [
        ["step 31 | loss nan | lr 1.0e-04", "step 32 | loss nan | lr 1.0e-04",
         "step 33 | loss nan | lr 1.0e-04"],
        ["step 31 | loss nan | lr 1.0e-04", "Loss is nan, stopping training"],
        [*RAISED, "ValueError: loss is nan at step 31"],
        [*RAISED, "AssertionError: loss is NaN"],
        [*RAISED, "FloatingPointError: NaN encountered in loss"],
        ["step 31 | loss nan | lr 1.0e-04", *RAISED, "RuntimeError: Training diverged at step 31"],
        [*RAISED, "RuntimeError: Function 'MulBackward0' returned nan values in its 0th output."],
        ["ERROR: NaN detected in loss at step 31, aborting"],
        [*RAISED, "RuntimeError: Non-finite loss detected: nan"],
    ],
    "oom_killer": [
        ["/job/run.sh: line 4:  2211 Killed                  python train.py"],
        ["Killed"],
        ["slurmstepd: error: Detected 1 oom-kill event(s) in StepId=812.0. Some of your processes "
         "may have been killed by the cgroup out-of-memory handler."],
        ["[1843.30] Out of memory: Killed process 4121 (python) total-vm:98234kB, anon-rss:81kB"],
        ["[1843.30] Memory cgroup out of memory: Killed process 4121 (python) total-vm:98234kB",
         "Killed"],
        ["    Reason:       OOMKilled", "    Exit Code:    137"],
        [
            "E0101 10:00:02.1 71 torch/distributed/elastic/multiprocessing/api.py:869] failed "
            "(exitcode: -9) local_rank: 0 (pid: 71) of binary: /usr/bin/python",
            "  traceback : Signal 9 (SIGKILL) received by PID 71",
        ],
    ],
    "traceback": [
        [*RAISED, "KeyError: 'input_ids'"],
        [*RAISED, "ValueError: too many values to unpack (expected 2)"],
        [*RAISED, "TypeError: forward() got an unexpected keyword argument 'mask'"],
        [*RAISED, "IndexError: list index out of range"],
        [*RAISED, "AttributeError: 'NoneType' object has no attribute 'shape'"],
        [*RAISED, "mylib.errors.StorageError: bucket is gone"],
        [*RAISED, "OSError: [Errno 28] No space left on device"],
        ["[rank0]: " + line for line in [*RAISED, "KeyError: 'labels'"]] + LAUNCHED,
        [*RAISED, "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)"],
    ],
    "assertion": [
        [*RAISED, "AssertionError"],
        [*RAISED, "AssertionError: hidden size 100 is not divisible by 12 heads"],
        ["python: loader.cpp:88: void load(): Assertion `n > 0' failed.", "Aborted (core dumped)"],
        ["[rank2]: " + line for line in [*RAISED, "AssertionError: world size"]] + LAUNCHED,
    ],
    "runtime_error": [
        [*RAISED, "RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x128 and 256x10)"],
        [*RAISED, "RuntimeError: Trying to backward through the graph a second time"],
        [
            *RAISED,
            "RuntimeError: one of the variables needed for gradient computation has been modified "
            "by an inplace operation",
        ],
        [*RAISED, "RuntimeError: shape '[8, 3, 4]' is invalid for input of size 90"],
        [*RAISED, "RuntimeError: something went wrong in the data pipeline"],
        [
            *RAISED,
            "RuntimeError: Error(s) in loading state_dict for GPT:",
            "\tsize mismatch for head.weight: copying a param with shape torch.Size([10, 64])",
        ],
    ],
}  # fmt: skip
CASES = [(name, lines) for name, ways in ENDS.items() for lines in ways]


def named(*lines: str) -> str | None:
    return error_class_of(view(read_text("\n".join(lines) + "\n"), live=False))


def test_each_class_is_tried() -> None:
    assert set(ENDS) == set(CLASSES)


@pytest.mark.parametrize(("name", "lines"), CASES, ids=lambda x: x if isinstance(x, str) else "")
@pytest.mark.parametrize("trained", [True, False], ids=["trained", "at the start"])
def test_class_of_what_ended_the_run(name: str, lines: list[str], trained: bool) -> None:
    assert named(*(TRAINED if trained else TRAINED[:1]), *lines) == name


SURVIVED = [
    "UserWarning: Expected all tensors to be on the same device; moving them",
    "WARNING: flash_attn is missing: ModuleNotFoundError: No module named 'flash_attn'",
    "RuntimeWarning: divide by zero encountered in log",
    "NaN or Inf found in input tensor.",
    "CUDA out of memory, retrying with batch size 4",
    "[rank0]:[W ProcessGroupNCCL.cpp:1250] Warning: WARNING: process group has NOT been destroyed",
    "reading cache: [Errno 2] No such file or directory: 'x', will be created",
    "NCCL INFO comm 0x55 rank 0 nranks 8 - Init COMPLETE",
]


@pytest.mark.parametrize("line", SURVIVED)
def test_what_was_survived_has_no_class(line: str) -> None:
    assert named(*TRAINED[:10], line, *TRAINED[10:]) is None


@pytest.mark.parametrize("line", SURVIVED)
def test_what_was_survived_does_not_hide_what_ended_the_run(line: str) -> None:
    assert named(line, *TRAINED, *RAISED, "KeyError: 'x'") == "traceback"


def test_run_that_goes_on_has_no_class() -> None:
    assert named(*TRAINED) is None
    assert named(*TRAINED, "Training finished.") is None


def test_first_rank_that_failed_is_asked() -> None:
    assert named(
        *TRAINED,
        *("[rank1]: " + line for line in [*RAISED, "ZeroDivisionError: division by zero"]),
        "[rank0]:[E101 10:00:00 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective "
        "operation timeout: WorkNCCL(SeqNum=41, OpType=ALLREDUCE, Timeout(ms)=600000) ran for "
        "600029 milliseconds before timing out.",
        *LAUNCHED,
    ) == "div_zero"  # fmt: skip


def test_cause_counts_before_what_was_raised_from_it() -> None:
    assert named(
        *TRAINED,
        *RAISED,
        "FileNotFoundError: [Errno 2] No such file or directory: 'data/x.bin'",
        "",
        "During handling of the above exception, another exception occurred:",
        "",
        *RAISED,
        "RuntimeError: could not load the data set",
    ) == "file_not_found"  # fmt: skip


def test_interrupted_run_has_no_class() -> None:
    assert named(*TRAINED, *RAISED, "KeyboardInterrupt") is None
