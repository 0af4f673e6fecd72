"""The emulator against runs: each left out in turn, and others that it has not seen."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.emulator.conftest import design, wave
from tests.emulator.test_summaries import correlation, regression

import paims
from paims import diagnostics, report, simulators

Runs = tuple[np.ndarray, np.ndarray]


def test_leaving_one_out_is_a_prediction_from_the_others(runs: Runs) -> None:
    X, y = runs
    single = paims.Emulator("squared_exponential", n_samples=300, random_state=0, goal="map").fit(
        X, y
    )
    loo = single.leave_one_out()
    lengths, nugget = single.map_.length_scales, single.map_.nugget
    for i in (0, 7, 19):
        rest = np.arange(len(y)) != i
        H = np.column_stack([np.ones(len(X)), X])
        K = correlation(X, lengths, nugget)
        beta, inverse, S2 = regression(K[np.ix_(rest, rest)], H[rest], y[rest])
        t = K[i, rest]
        solved = np.linalg.solve(K[np.ix_(rest, rest)], np.column_stack([y - H @ beta, H])[rest])
        g = H[i] - t @ solved[:, 1:]
        variance = 1.0 + nugget - t @ np.linalg.solve(K[np.ix_(rest, rest)], t) + g @ inverse @ g
        dof = len(y) - 1 - H.shape[1]
        assert loo.observed[i] == pytest.approx(y[i])
        assert loo.mean[i] == pytest.approx(H[i] @ beta + t @ solved[:, 0], rel=1e-6)
        assert loo.std[i] == pytest.approx(np.sqrt(S2 / (dof - 2) * variance), rel=1e-6)


def test_units_of_leaving_one_out(emulator: paims.Emulator, runs: Runs) -> None:
    X, y = runs
    settings = {"nugget_prior": "uniform", "n_samples": 500, "random_state": 3}
    other = paims.Emulator("squared_exponential", **settings).fit(X, 3.0 + 8.0 * y).leave_one_out()
    first = emulator.leave_one_out()
    np.testing.assert_allclose(other.mean, 3.0 + 8.0 * first.mean, rtol=1e-9)
    np.testing.assert_allclose(other.summary.rmse, 8.0 * first.summary.rmse, rtol=1e-9)
    assert first.passed


def test_too_few_runs_to_leave_one_out(runs: Runs) -> None:
    X, y = runs
    least = paims.Emulator("squared_exponential", n_samples=200, random_state=0).fit(X[:7], y[:7])
    assert least.leave_one_out().observed.shape == (7,)
    few = paims.Emulator("squared_exponential", n_samples=200, random_state=0).fit(X[:6], y[:6])
    with pytest.raises(ValueError, match=r"too few runs to leave one out: 6, where .* needs 7"):
        few.leave_one_out()


def held_out(n: int) -> Runs:
    X = design(n, seed=5)
    return X, wave(X * [1.0, 0.05]) + 0.05 * np.random.default_rng(8).standard_normal(n)


def test_validation_is_that_of_the_prediction(emulator: paims.Emulator) -> None:
    X, y = held_out(40)
    found = emulator.validate(X, y)
    expected = diagnostics.validate(y, emulator.predict_distribution(X))
    assert str(found) == str(expected)
    assert found.passed
    assert found.scores.n == 40
    assert not emulator.validate(X, y + 1.0).passed
    assert str(emulator.validate(X.tolist(), y[:, None].ravel().tolist())) == str(expected)


def test_many_held_out_runs_are_evenly_chosen(emulator: paims.Emulator) -> None:
    X, y = held_out(301)
    found = emulator.validate(X, y)
    assert found.scores.n == 101
    assert str(found) == str(emulator.validate(X[::3], y[::3]))


def test_bad_held_out_runs(emulator: paims.Emulator, runs: Runs) -> None:
    X, y = held_out(20)
    for bad_X, bad_y, message in (
        (X, y[:-1], "inconsistent numbers of samples"),
        (X[:, :1], y, "expecting 2 features"),
        (X, np.append(y[:-1], np.nan), "NaN"),
        (X, y.astype(str), "y holds text"),
        (X, np.column_stack([y, y]), "1d array"),
    ):
        with pytest.raises(ValueError, match=message):
            emulator.validate(bad_X, bad_y)
    with pytest.raises(ValueError, match="not fitted"):
        paims.Emulator().validate(X, y)
    with pytest.raises(ValueError, match="not fitted"):
        paims.Emulator().leave_one_out()
    named = paims.Emulator("squared_exponential", n_samples=200, random_state=0)
    named.fit(pd.DataFrame(runs[0], columns=["a", "b"]), runs[1])
    named.validate(pd.DataFrame(X, columns=["a", "b"]), y)
    with pytest.raises(ValueError, match="feature names"):
        named.validate(pd.DataFrame(X, columns=["b", "a"]), y)


@pytest.fixture(scope="module")
def plain() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Runs of Branin's function, and others."""
    branin = simulators.branin
    X, held_out = branin.design(18, 4), branin.design(30, 9)
    return X, branin(X), held_out, branin(held_out)


@pytest.mark.parametrize("exponent", [664, -532, -1010, 980])
def test_units_beyond_the_square_root_of_doubles(
    plain: tuple[np.ndarray, ...], exponent: int
) -> None:
    """Outputs whose squares overflow, or are zero: a power of two changes no digit."""
    X, y, held_out, truth = plain
    one, other = (
        paims.Emulator("squared_exponential", random_state=0, n_samples=300).fit(X, np.ldexp(y, e))
        for e in (0, exponent)
    )
    left, left_other = one.leave_one_out(), other.leave_one_out()
    seen, seen_other = (
        one.validate(held_out, truth),
        other.validate(held_out, np.ldexp(truth, exponent)),
    )
    for a, b in ((left.summary, left_other.summary), (seen.scores, seen_other.scores)):
        for name in ("rmse", "crps", "crps_error"):
            assert getattr(b, name) == np.ldexp(getattr(a, name), exponent) > 0.0
        assert b.nlpd == pytest.approx(a.nlpd + exponent * np.log(2.0), rel=1e-12)
        assert (b.q2, b.coverage_95) == (a.q2, a.coverage_95)
        assert b.coverage_95 > 0.8
    np.testing.assert_array_equal(left_other.standardised, left.standardised)
    np.testing.assert_array_equal(left_other.std, np.ldexp(left.std, exponent))
    for a, b in ((left, left_other), (seen, seen_other)):
        assert [passed for passed, _ in a.checks.values()] == [
            passed for passed, _ in b.checks.values()
        ]
    facts = report.study(other, (held_out, np.ldexp(truth, exponent)))
    trust = report.answers(facts)[0]
    assert trust.short == report.answers(report.study(one, (held_out, truth)))[0].short
    assert "nan" not in trust.text
    assert "inf" not in trust.text
    page = report.render_report(other, numbers=facts)
    assert ">inf<" not in page
    assert ">nan<" not in page
