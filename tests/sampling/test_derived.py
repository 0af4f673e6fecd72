"""Derived quantities: computed once for the draws, and present wherever the draws are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.sampling.kit import TOY, Floats

import paims

BOX = paims.Normal([0.0, 0.0], 9.0)


def derived(x: Floats) -> dict[str, Floats]:
    return {"sum": x[:, 0] + x[:, 1], "radius": np.hypot(x[:, 0], x[:, 1])}


def run(**options: Any) -> paims.SampleResult:
    options = {"derived": derived, "random_state": 0} | options
    return paims.sample(TOY.log_density, BOX, 400, **options)


@pytest.fixture(scope="module")
def result() -> paims.SampleResult:
    return run()


def test_values_are_those_of_the_draws(result: paims.SampleResult) -> None:
    assert list(result.derived) == ["sum", "radius"]
    for name, values in derived(result.draws).items():
        np.testing.assert_array_equal(result.derived[name], values)


def test_the_function_is_called_twice_only() -> None:
    sizes = []

    def counted(x: Floats) -> dict[str, Floats]:
        sizes.append(len(x))
        return derived(x)

    found = run(derived=counted)
    assert sizes == [2, len(found.draws)]  # once to see whether it works


def test_it_cannot_change_the_draws(result: paims.SampleResult) -> None:
    def rude(x: Floats) -> dict[str, Floats]:
        x[:] = 0.0
        return {"nothing": x[:, 0]}

    np.testing.assert_array_equal(run(derived=rude).draws, result.draws)


def test_single_points() -> None:
    def density(x: Floats) -> float:
        return float(TOY.log_density(x[None])[0])

    def one(x: Floats) -> dict[str, float]:
        return {"sum": float(x[0] + x[1])}

    found = paims.sample(density, BOX, 100, vectorized=False, derived=one, random_state=0)
    np.testing.assert_allclose(found.derived["sum"], found.draws.sum(axis=1))


def test_summary_has_a_row_for_each(result: paims.SampleResult) -> None:
    row = next(line for line in result.summary().splitlines() if line.startswith("radius"))
    values = result.derived["radius"]
    mean = result.weights @ values
    expected = [mean, np.sqrt(result.weights @ (values - mean) ** 2)]
    np.testing.assert_allclose([float(v) for v in row.split()[1:3]], expected, rtol=1e-3)


def test_columns(result: paims.SampleResult) -> None:
    table = result.columns()
    assert list(table) == ["x1", "x2", "sum", "radius", "weight", "log_density"]
    np.testing.assert_array_equal(table["radius"], result.derived["radius"])
    np.testing.assert_array_equal(table["weight"], result.weights)
    np.testing.assert_array_equal(table["log_density"], result.log_density)


def test_columns_have_likelihood_and_prior_apart() -> None:
    found = paims.sample(log_likelihood=TOY.log_density, prior=BOX, n_samples=400, random_state=0)
    table = found.columns()
    np.testing.assert_allclose(table["log_likelihood"], TOY.log_density(found.draws))
    np.testing.assert_allclose(table["log_prior"], BOX.log_density(found.draws))


def test_data_frame(result: paims.SampleResult) -> None:
    table = result.to_dataframe()
    assert list(table.columns) == list(result.columns())
    np.testing.assert_array_equal(table["radius"], result.derived["radius"])


def test_data_frame_without_pandas(
    result: paims.SampleResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'paims\[app\]'"):
        result.to_dataframe()


def test_inference_data(result: paims.SampleResult) -> None:
    pytest.importorskip("arviz_base", reason="ArviZ is an extra")
    posterior = result.to_inference_data(random_state=1).posterior
    assert list(posterior.data_vars) == ["x1", "x2", "sum", "radius"]
    np.testing.assert_allclose(posterior["sum"], posterior["x1"] + posterior["x2"])


def test_an_optimum_has_them_at_both_temperatures() -> None:
    found = run(goal="optimum")
    assert found.posterior is not None
    for each in (found, found.posterior):
        np.testing.assert_array_equal(each.derived["sum"], each.draws.sum(axis=1))


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (lambda x: x[:, 0], TypeError, "derived must return a dictionary"),
        (lambda x: {"a": x}, ValueError, r"derived\['a'\] must have shape \(2,\)"),
        (lambda x: {"x2": x[:, 0]}, ValueError, "name 'x2', which is taken"),
        (lambda x: {"weight": x[:, 0]}, ValueError, "name 'weight', which is taken"),
    ],
)
def test_what_is_wrong_is_said_before_the_run(
    function: Any, error: type[Exception], text: str
) -> None:
    def never(x: Floats) -> Floats:
        raise AssertionError("the run has begun")

    with pytest.raises(error, match=text):
        paims.sample(never, BOX, derived=function)


def test_a_run_is_not_lost_to_it(result: paims.SampleResult) -> None:
    def fails_later(x: Floats) -> dict[str, Floats]:
        if len(x) > 2:
            raise ZeroDivisionError("at a far draw")
        return derived(x)

    with pytest.warns(paims.SamplingWarning, match=r"ZeroDivisionError: at a far draw.*with_deri"):
        found = run(derived=fails_later)
    np.testing.assert_array_equal(found.draws, result.draws)
    assert found.derived == {}
    assert list(found.with_derived(derived).derived) == ["sum", "radius"]
