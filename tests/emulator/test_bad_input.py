"""What a user may get wrong: each has a clear error or a stated handling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import paims
from paims.gp import Posterior

RNG = np.random.default_rng(5)
X = RNG.random((14, 2))
Y = np.sin(5.0 * X[:, 0]) + X[:, 1] ** 2


def fit(X: Any = X, y: Any = Y, **settings: Any) -> paims.Emulator:
    return paims.Emulator(n_samples=200, random_state=0, **settings).fit(X, y)


def with_value(value: Any, dtype: Any = float) -> np.ndarray:
    changed = X.astype(dtype)
    changed[3, 1] = value
    return changed


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite(value: float) -> None:
    with pytest.raises(ValueError, match=r"X contains (NaN|infinity)"):
        fit(with_value(value))
    y = Y.copy()
    y[2] = value
    with pytest.raises(ValueError, match=r"y contains (NaN|infinity)"):
        fit(X, y)
    with pytest.raises(ValueError, match=r"X contains (NaN|infinity)"):
        fit().predict(with_value(value))


@pytest.mark.parametrize(
    ("mean", "needed"), [("zero", 3), ("constant", 4), ("linear", 6), ("quadratic", 9)]
)
def test_too_few_runs(mean: str, needed: int) -> None:
    with pytest.raises(ValueError, match=rf"n_samples={needed - 1} run.*= {needed} are needed"):
        fit(X[: needed - 1], Y[: needed - 1], mean=mean)
    assert np.isfinite(fit(X[:needed], Y[:needed], mean=mean).predict(X)).all()


def test_one_run() -> None:
    with pytest.raises(ValueError, match=r"n_samples=1 run\(s\), too few.*q \+ 3 = 6"):
        fit(X[:1], Y[:1])


def test_no_run_and_no_input() -> None:
    with pytest.raises(ValueError, match="0 sample"):
        fit(X[:0], Y[:0])
    with pytest.raises(ValueError, match="0 feature"):
        fit(X[:, :0])


def test_repeated_runs_with_equal_outputs() -> None:
    twice, y = np.vstack([X, X[:3]]), np.append(Y, Y[:3])
    assert np.abs(fit(twice, y).predict(X) - Y).max() < 0.2
    assert np.abs(fit(twice, y, nugget=1e-8).predict(X) - Y).max() < 1e-3
    with pytest.raises(ValueError, match="repeated rows, such as 0 and 14: with nugget=0"):
        fit(twice, y, nugget=0)


def test_repeated_runs_with_different_outputs() -> None:
    twice, y = np.vstack([X, X]), np.concatenate([Y - 0.3, Y + 0.3])
    emulator = fit(twice, y)
    mean, std = emulator.predict(X, return_std=True)
    assert (std > 0.2).all()  # A run has the noise that the repetitions show; its mean has less.
    _, of_mean = emulator.predict(X, return_std=True, include_nugget=False)
    assert (of_mean < 0.8 * std).all()
    assert (np.abs(mean - Y) < 2.0 * of_mean).all()
    with pytest.raises(ValueError, match=r"0 and 14, have different outputs.*fixed at 1e-10"):
        fit(twice, y, nugget=1e-10)
    with pytest.raises(ValueError, match="repeated rows"):
        fit(twice, y, nugget=0)
    assert np.isfinite(fit(twice, y, nugget=0.1).predict(X)).all()


def test_constant_column_is_left_out_with_a_warning() -> None:
    more = np.column_stack([X[:, 0], np.full(14, 7.0), X[:, 1]])
    with pytest.warns(UserWarning, match=r"Column\(s\) x2 of X take one value only"):
        emulator = fit(more)
    plain = fit()
    np.testing.assert_array_equal(emulator.predict(more), plain.predict(X))
    assert emulator.n_features_in_ == 3
    assert emulator.draws_.dtype.names == ("length_scale_x1", "length_scale_x3", "nugget")
    assert emulator.beta_["name"].tolist() == ["1", "x1", "x3"]
    elsewhere = more + [0.0, 1.0, 0.0]  # noqa: RUF005, a sum
    with pytest.warns(UserWarning, match="x2 took one value only in the runs and have others"):
        predicted = emulator.predict(elsewhere)
    np.testing.assert_array_equal(predicted, plain.predict(X))
    # A function of the inputs still sees all columns.
    with pytest.warns(UserWarning, match="one value only"):
        fit(more, mean=lambda x: np.column_stack([x[:, 1], x[:, 2]]))


def test_only_constant_columns() -> None:
    with pytest.raises(ValueError, match=r"Every column of X takes one value only \(x1, x2\)"):
        fit(np.ones((14, 2)))


def test_constant_output() -> None:
    with pytest.raises(ValueError, match=r"y takes one value only \(3.5\): there is no variation"):
        fit(X, np.full(14, 3.5))
    with pytest.raises(ValueError, match="y takes one value only"):
        fit(X, np.zeros(14), mean="zero")
    flat = fit(X, np.full(14, 3.5), mean="zero", nugget_prior="uniform")
    assert np.isfinite(flat.predict(X)).all()


def test_output_that_is_exactly_the_trend() -> None:
    emulator = fit(X, 3.0 + X @ [1.0, -2.0])
    mean, std = emulator.predict([[0.5, 0.5], [2.0, 2.0]], return_std=True)
    np.testing.assert_allclose(mean, [2.5, 1.0], atol=1e-6)
    assert (std < 1e-6).all()


@pytest.mark.parametrize(
    "text",
    [X.astype(str), with_value("3.0", object), pd.DataFrame(X).astype(str), [["a", "b"]] * 14],
)
def test_text(text: Any) -> None:
    with pytest.raises(ValueError, match="X holds text where numbers are needed"):
        fit(text)
    with pytest.raises(ValueError, match="X holds text"):
        fit().predict(text)


def test_text_in_the_output() -> None:
    with pytest.raises(ValueError, match="y holds text"):
        fit(X, Y.astype(str))


def test_object_dtype_with_numbers_is_taken_as_numbers() -> None:
    np.testing.assert_array_equal(
        fit(X.astype(object), Y.astype(object)).predict(X), fit().predict(X)
    )
    with pytest.raises(TypeError):
        fit(with_value({"a": 1}, object))


def test_complex_numbers() -> None:
    with pytest.raises(ValueError, match="Complex data not supported"):
        fit(X.astype(complex))
    with pytest.raises(ValueError, match="Complex data not supported"):
        fit(X, Y + 1j)


def test_sparse_input() -> None:
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        fit(sparse.csr_array(X))


@pytest.mark.parametrize("other", [X[:, :1], np.hstack([X, X])])
def test_another_number_of_columns_at_prediction(other: np.ndarray) -> None:
    with pytest.raises(ValueError, match=f"X has {other.shape[1]} features, but Emulator"):
        fit().predict(other)


def test_other_names_at_prediction() -> None:
    emulator = fit(pd.DataFrame(X, columns=["a", "b"]))
    with pytest.raises(ValueError, match="feature names should match"):
        emulator.predict(pd.DataFrame(X, columns=["b", "a"]))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        emulator.predict(X)


def test_numbers_of_runs_differ() -> None:
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        fit(X, Y[:-1])


def test_several_outputs_with_infinite_values() -> None:
    with pytest.raises(ValueError, match="y contains infinity"):
        fit(X, np.column_stack([Y, np.where(np.arange(len(Y)) == 1, np.inf, Y)]))


def test_several_outputs_without_a_run() -> None:
    with pytest.raises(ValueError, match="y2 has no run with a value"):
        fit(X, np.column_stack([Y, np.full(len(Y), np.nan)]))


def test_three_dimensional_outputs() -> None:
    with pytest.raises(ValueError, match="dim"):
        fit(X, np.ones((len(Y), 2, 2)))


def test_vector_in_place_of_a_matrix() -> None:
    with pytest.raises(ValueError, match="Expected 2D array"):
        fit(X[:, 0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"goal": "best"}, "goal must be one of 'posterior', 'optimum', 'map'; got 'best'"),
        ({"predictive": "cauchy"}, "predictive must be one of"),
        ({"kernel": "rbf"}, "kernel must be one of"),
        ({"mean": "cubic"}, "mean must be one of"),
        ({"prior": "none"}, "prior must be one of"),
        ({"nugget": "fixed"}, "nugget must be"),
        ({"nugget": -1.0}, "not negative"),
        ({"nugget_prior": "normal"}, "nugget_prior must be one of"),
        ({"scheme": "fast"}, "scheme must be"),
    ],
)
def test_unknown_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(**settings)


def test_too_few_samples() -> None:
    with pytest.raises(ValueError, match="n_samples must be"):
        paims.Emulator(n_samples=10).fit(X, Y)


def test_standard_deviation_and_covariance_at_once() -> None:
    with pytest.raises(ValueError, match="one of return_std and return_cov"):
        fit().predict(X, return_std=True, return_cov=True)


def test_log_posterior_needs_a_nugget_that_is_estimated() -> None:
    with pytest.raises(ValueError, match="nugget is estimated"):
        fit().log_posterior([[1.0, 1.0]])
    assert np.isfinite(fit(nugget=1e-4).log_posterior([[1.0, 1.0]])).all()


def as_dates(values: np.ndarray) -> np.ndarray:
    return np.datetime64("2020-01-01") + np.round(1e3 * values).astype("timedelta64[D]")


def mixed(column: Any) -> pd.DataFrame:
    return pd.DataFrame({"a": X[:, 0], "b": column})


#: Inputs of which NumPy makes numbers without a word, and what is said of them.
SILENT: dict[str, tuple[Any, str]] = {
    "masked": (np.ma.masked_greater(X, 0.9), "masked array with"),
    "dates": (as_dates(X), "dates or times"),
    "durations": (as_dates(X) - as_dates(X[:1]), "dates or times"),
    "dates in a frame": (mixed(as_dates(X[:, 1])), "dates or times"),
    "dates with a zone": (mixed(pd.to_datetime(as_dates(X[:, 1]), utc=True)), "dates or times"),
    "durations in a frame": (mixed(as_dates(X[:, 1]) - as_dates(X[:1, 1])), "dates or times"),
    "dates as objects": (as_dates(X).astype("M8[s]").astype(object), "dates or times"),
    "integers beyond 2^53": (np.arange(28).reshape(14, 2) + 2**60 + 1, "would be rounded"),
    "unsigned": (
        np.arange(28, dtype=np.uint64).reshape(14, 2) + np.uint64(2**63 + 1),
        "would be rounded",
    ),
    "integers of Python": ([[i, 2**70 + 1] for i in range(14)], "would be rounded"),
    "integers in a frame": (mixed(np.arange(14) + 2**60 + 1), "would be rounded"),
    "the least integer but one": (np.full((14, 2), -(2**63) + 1), "would be rounded"),
    "records": (np.zeros((14, 2), dtype=[("a", float), ("b", float)]), "records"),
    "numbers in bytes": (X.astype("S8"), "text"),
}


@pytest.mark.parametrize("case", list(SILENT))
def test_what_numpy_would_take_for_numbers(case: str) -> None:
    values, message = SILENT[case]
    with pytest.raises(ValueError, match=f"X .*{message}"):
        fit(values)
    with pytest.raises(ValueError, match=f"X .*{message}"):
        fit().predict(values)
    if not isinstance(values, pd.DataFrame):
        column = np.ma.array(values)[:, 1] if case == "masked" else np.array(values)[:, 1]
        with pytest.raises(ValueError, match=f"y .*{message}"):
            fit(X, column)
        with pytest.raises(ValueError, match=f"y .*{message}"):
            fit().validate(X, column)
        with pytest.raises(ValueError, match=f"y .*{message}"):
            fit().predict_distribution(X).cdf(column)
        with pytest.raises(ValueError, match=message):
            Posterior(X, column)


@pytest.mark.parametrize("case", list(SILENT))
def test_what_numpy_would_take_for_numbers_in_a_table_of_outputs(case: str) -> None:
    values, message = SILENT[case]
    with pytest.raises(ValueError, match=f"y .*{message}"):
        fit(X, values)


def test_what_is_a_number_after_all() -> None:
    expected = fit().predict(X)
    # No value is masked; a double can hold the integer; true and false are 1 and 0.
    np.testing.assert_array_equal(fit(np.ma.array(X), np.ma.array(Y)).predict(X), expected)
    powers = X.copy()
    powers[:, 0] = np.arange(14) * 2.0**60
    whole = [[int(a), b] for a, b in powers]
    np.testing.assert_array_equal(fit(whole).predict(powers), fit(powers).predict(powers))
    flags = np.column_stack([X[:, 0], X[:, 1] > 0.5])
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1] > 0.5})
    np.testing.assert_array_equal(fit(frame).predict(frame), fit(flags).predict(flags))
