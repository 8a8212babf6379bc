"""No series where there is none: sources, texts, logs of servers, and tables of other things."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

from support.logs import read as read_text
from support.plain import false_series, read

LIBRARY = Path(sysconfig.get_path("stdlib"))
FOLDERS = (
    *("asyncio", "collections", "concurrent", "email", "encodings", "http", "importlib", "json"),
    *("logging", "multiprocessing", "unittest", "urllib", "xml"),
)
OTHERS = {
    "nginx": '10.0.0.1 - - [12/Mar/2024:10:00:00 +0000] "GET /epoch/3?loss=1 HTTP/1.1" 200 51\n'
    * 30,
    "systemd": "Mar 12 10:00:00 host systemd[1]: Started Daily apt upgrade.\n"
    "Mar 12 10:00:00 host kernel: [    1.234567] usb 1-1: new device number 3\n",
    "kubernetes": "I0312 10:00:00.000000       1 election.go:258] successfully acquired lease\n"
    "Normal  Scheduled  5s  default-scheduler  Successfully assigned ns/pod to node-3\n",
    "docker": "Step 3/10 : RUN pip install -r requirements.txt\n ---> Running in 5f3a1b\n"
    "#12 [4/9] RUN apt-get update\n#12 1.234 Get:1 http://deb.debian.org stable [151 kB]\n"
    "#12 DONE 5.2s\n",
    "pip": "Collecting numpy==1.26.4\n  Downloading numpy-1.26.4-cp311.whl (18.3 MB)\n"
    "     ---------------------- 18.3/18.3 MB 55.1 MB/s eta 0:00:00\n",
    "pytest": "tests/test_a.py ......                   [ 50%]\n"
    "tests/test_b.py ......                   [100%]\n=== 12 passed, 1 skipped in 3.21s ===\n",
    "git": "commit 1a2b3c4d\nDate:   Tue Mar 12 10:00:00 2024 +0100\n\n    Fix step 3 of setup\n",
    "make": "[ 50%] Building CXX object src/CMakeFiles/a.dir/b.cpp.o\n[100%] Linking CXX target\n",
    "sales": "date,region,units,price,total\n2024-01-01,North,12,3.50,42.00\n"
    "2024-01-02,South,7,3.50,24.50\n",
    "iris": "sepal_length,sepal_width,petal_length,petal_width,species\n5.1,3.5,1.4,0.2,setosa\n",
    "benchmark": "Name         Mean     StdDev   Ops/s\nparse        1.23us   0.04us   812345\n",
    "recipe": "Step 1: Heat the oven to 200 degrees.\nStep 2: Mix 300 g of flour and 2 eggs.\n",
    "changelog": "## 1.2.0\n- Fix a loss of 3 packets after 10 tries\n- Accuracy of 5 digits\n",
    "c": "#define EPOCH 1970\nstatic int step = 3, iter = 5;\nfor (i = 0; i < 10; i++)\n",
    "yaml": "optimizer:\n  lr: 0.001\n  epochs: 10\nreplicas: 3\n",
}  # fmt: skip


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_library_trains_nothing(folder: str) -> None:
    found = {}
    for path in sorted((LIBRARY / folder).rglob("*.py")):
        reading = read(path)
        names = false_series(reading) if reading is not None else []
        if names:
            found[path.name] = names
    assert not found


@pytest.mark.parametrize("kind", OTHERS)
def test_what_else_trains_nothing(kind: str) -> None:
    assert false_series(read_text(OTHERS[kind])) == []
