"""The stores, written once."""

from __future__ import annotations

import pytest

from support import trackers
from support.trackers import Written


@pytest.fixture(scope="session")
def mlflow_stores(tmp_path_factory: pytest.TempPathFactory) -> Written:
    pytest.importorskip("sqlalchemy", exc_type=ImportError)
    pytest.importorskip("mlflow.version", exc_type=ImportError)
    folder = tmp_path_factory.mktemp("mlflow")
    return Written(folder, trackers.write_mlflow(folder))


@pytest.fixture(scope="session")
def trackio_stores(tmp_path_factory: pytest.TempPathFactory) -> Written:
    pytest.importorskip("trackio", exc_type=ImportError)
    folder = tmp_path_factory.mktemp("trackio")
    return Written(folder, trackers.write_trackio(folder))
