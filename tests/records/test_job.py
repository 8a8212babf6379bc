"""The id of a job: stable, distinct, and safe as a file's name."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwarden.records.job import job_id

ANY = st.characters(exclude_categories=(), exclude_characters="\0")
PATH = st.one_of(st.text(ANY, max_size=80), st.text(string.ascii_letters + "/._- é\n", max_size=80))
PLACE = st.one_of(st.none(), PATH)


@given(PLACE, PLACE, PLACE)
def test_any_id_is_a_safe_file_name_and_stable(
    config: str | None, model: str | None, log: str | None
) -> None:
    if not (config or model or log):
        with pytest.raises(ValueError, match="needs a config, a model or a log"):
            job_id(config, model, log)
        return
    name = job_id(config, model, log)
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", name)
    assert len(name) <= 64
    assert name == job_id(config, model, log)


@given(st.tuples(PATH, PATH), st.tuples(PATH, PATH))
def test_other_paths_give_other_ids(one: tuple[str, str], other: tuple[str, str]) -> None:
    if any(one) and any(other) and one != other:
        assert job_id(*one) != job_id(*other)


def test_config_and_model_are_not_interchangeable_and_the_log_counts_only_alone() -> None:
    assert job_id("/a", None) != job_id(None, "/a") != job_id(None, None, "/a")
    assert job_id("/a", "/b", "/log1") == job_id("/a", "/b", "/log2")
    assert job_id(None, None, "/log1") != job_id(None, None, "/log2")


def test_the_name_tells_which_run_it_is() -> None:
    assert job_id("/runs/llama-sft/config.yaml", None).startswith("llama-sft-")
    assert job_id("/runs/x/Lora Rank 8.yaml", None).startswith("x-lora-rank-8-")


def test_undecodable_path_bytes_still_give_an_id() -> None:
    assert job_id("/runs/\udcff/config.yaml", None)
