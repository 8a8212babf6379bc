"""Fixtures that several rooms share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

from support import nvml

# A loaded machine is slow; what is tested here is never how fast it is.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# The tests may themselves be run in a Claude Code session, of which the commands must not know.
for _name in ("CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "TRAINWARDEN_ROOT", "TRAINWARDEN_DATA"):
    os.environ.pop(_name, None)

Standin = Callable[..., dict[str, str]]


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stand-in libnvidia-ml.so.1, compiled once."""
    if nvml.compiler() is None:
        pytest.skip("no C compiler (cc, gcc, clang) to build the stand-in NVML library with")
    return nvml.build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def nvml_standin(nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Standin:
    """`nvml_standin(devices=[{…}, …], system={…})` sets GPUs up for this process and its children.

    Returns the environment variables it set, for processes that are given their own environment.
    """

    def setup(
        devices: Sequence[Mapping[str, Any]] = ({},), system: Mapping[str, Any] | None = None
    ) -> dict[str, str]:
        paths = [str(nvml_library.parent), os.environ.get("LD_LIBRARY_PATH", "")]
        variables = {
            "NVML_STANDIN": str(nvml.write(tmp_path / "nvml.conf", devices, system)),
            "LD_LIBRARY_PATH": os.pathsep.join(filter(None, paths)),
        }
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return variables

    return setup
