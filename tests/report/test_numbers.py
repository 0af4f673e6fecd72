"""Numbers as the report writes them."""

from __future__ import annotations

import pytest

from paims.report._verdict import number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (15321.7, "15320"),
        (-0.0153217, "-0.01532"),
        (9999996.0, "10000000"),
        (1.53217e7, "1.532e+07"),
        (1.53217e-5, "1.532e-05"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
    ],
)
def test_numbers_as_people_write_them(value: float, text: str) -> None:
    assert number(value) == text
