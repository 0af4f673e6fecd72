"""What would be taken for numbers without a word, wherever several outputs are met."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import paims
from paims.report import render_report

X = np.random.default_rng(0).random((20, 2))
Y = np.column_stack(
    [
        np.sin(4.0 * X[:, 0]) + X[:, 1],
        np.cos(3.0 * X[:, 1]) * X[:, 0],
        np.full(20, 2.0),
        1.0 + 2.0 * X[:, 0],
    ]
)
COLUMNS = ["a", "b", "constant", "trend"]
WAYS = ("separate", "shared", "components")

pytestmark = pytest.mark.filterwarnings("ignore:.*leave nothing to learn")


@cache
def fitted(way: str) -> paims.Emulator:
    settings = {"n_samples": 300, "prior": "jointly_robust", "kernel": "matern52"}
    emulator = paims.Emulator(**settings, random_state=0, outputs=way)
    return emulator.fit(pd.DataFrame(X, columns=["u", "v"]), pd.DataFrame(Y, columns=COLUMNS))


def masked(values: np.ndarray) -> np.ma.MaskedArray[Any, Any]:
    mask = np.zeros(values.shape, dtype=bool)
    mask[(1,) * values.ndim] = True
    return np.ma.masked_array(values, mask=mask)


dates = pd.DataFrame({name: pd.date_range("2020", periods=2) for name in "uv"})

BAD_INPUTS: dict[str, tuple[Any, str]] = {
    "masked": (masked(X), "masked array with 1 masked"),
    "NaN": (np.full((2, 2), np.nan), "contains NaN"),
    "columns": (np.zeros((2, 3)), "features|must have 2 columns"),
    "one row": (np.zeros(2), "Expected 2D array"),
    "dates": (dates, "dates or times"),
}


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("case", list(BAD_INPUTS))
@pytest.mark.parametrize("way", WAYS)
def test_inputs_of_each_output(way: str, case: str) -> None:
    bad, text = BAD_INPUTS[case]
    for one in fitted(way).outputs_:
        with pytest.raises(ValueError, match=text):
            one.predict(bad)


NAMED = pd.DataFrame(X, columns=["u", "v"])
BAD_CALLS: dict[str, tuple[Callable[[paims.Emulator], Any], str]] = {
    "validate": (lambda e: e.outputs_[1].validate(NAMED, masked(Y[:, 1])), "masked array"),
    "validate, few": (lambda e: e.outputs_[1].validate(NAMED, Y[:5, 1]), "inconsistent numbers"),
    "logpdf": (lambda e: e.predict_distribution(NAMED).logpdf(masked(Y)), "masked array"),
    "weights": (
        lambda e: e.predict_distribution(NAMED).combine(masked(np.ones(4))), "masked array",
    ),
    "report": (lambda e: render_report(e, held_out=(NAMED, masked(Y))), "masked array"),
    "report, inputs": (lambda e: render_report(e, held_out=(masked(X), Y)), "masked array"),
    "report, few": (lambda e: render_report(e, held_out=(X, Y[:4])), "inconsistent numbers"),
    "report, columns": (
        lambda e: render_report(e, held_out=(X, Y[:, :2])), "must have the 4 outputs",
    ),
    "report, infinite": (lambda e: render_report(e, held_out=(X, Y * np.inf)), "infinity"),
    "report, other inputs": (
        lambda e: render_report(e, held_out=(NAMED[["v", "u"]], Y)), "feature names",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", list(BAD_CALLS))
@pytest.mark.parametrize("way", WAYS)
def test_calls(way: str, case: str) -> None:
    call, text = BAD_CALLS[case]
    with pytest.raises(ValueError, match=text):
        call(fitted(way))


def test_held_out_outputs_are_found_by_their_names() -> None:
    table = pd.DataFrame(Y + 0.01 * X[:, :1], columns=COLUMNS)
    emulator = fitted("separate")
    there = render_report(emulator, held_out=(NAMED, table[COLUMNS[::-1]]))
    assert there == render_report(emulator, held_out=(X, table.to_numpy()))


def test_held_out_inputs_of_one_output_are_found_by_their_names() -> None:
    settings = {"n_samples": 300, "prior": "jointly_robust", "kernel": "matern52"}
    emulator = paims.Emulator(**settings, random_state=0).fit(NAMED, Y[:, 0])
    with pytest.raises(ValueError, match="feature names"):
        render_report(emulator, held_out=(NAMED[["v", "u"]], Y[:, 0]))
    with pytest.raises(ValueError, match="inconsistent numbers"):
        render_report(emulator, held_out=(NAMED, Y[:4, 0]))
