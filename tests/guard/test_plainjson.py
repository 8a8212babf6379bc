from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwarden.guard.plainjson import dumps, loads

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES)
def test_what_is_written_reads_back_the_same_here_and_elsewhere(value: Any) -> None:
    text = dumps(value)
    assert "\n" not in text
    assert text.isascii()
    assert loads(text) == value
    assert json.loads(text) == value


@given(VALUES, st.sampled_from(["", " ", "\n\t "]), st.booleans())
def test_what_others_write_is_read(value: Any, margin: str, ascii_only: bool) -> None:
    text = margin + json.dumps(value, ensure_ascii=ascii_only, indent=1) + margin
    assert loads(text) == value


@given(st.text(max_size=60))
def test_any_text_is_read_as_json_reads_it_or_refused(text: str) -> None:
    try:
        expected = json.loads(text, strict=False)
    except ValueError:
        with pytest.raises(ValueError, match="JSON|ecod|xpect|nterminated|nvalid|ontrol|xtra"):
            loads(text)
    else:
        found = loads(text)
        assert found == expected or (math.isnan(found) and math.isnan(expected))


def test_what_json_has_no_word_for_is_refused() -> None:
    with pytest.raises(TypeError, match="set"):
        dumps({"a": {1, 2}})
