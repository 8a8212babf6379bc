from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwarden.guard.plainjson import dumps, loads

SOURCE = Path(__file__).parents[2] / "src"
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
        with pytest.raises(ValueError, match=r"(?s)."):
            loads(text)
    else:
        found = loads(text)
        assert found == expected or (math.isnan(found) and math.isnan(expected))


@pytest.mark.parametrize("text", ["", "{", '{"a', '{"a":', "[1,", "tru", '"x', "{} {}"])
def test_a_torn_text_is_refused_where_json_was_never_imported(text: str) -> None:
    script = (
        f"import sys; sys.path.insert(0, {str(SOURCE)!r})\n"
        "from trainwarden.guard.plainjson import loads\n"
        f"try: loads({text!r})\nexcept ValueError: print('refused', 'json' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True
    )
    assert done.stdout.split()[:1] == ["refused"], done.stderr


def test_what_json_has_no_word_for_is_refused() -> None:
    with pytest.raises(TypeError, match="set"):
        dumps({"a": {1, 2}})
