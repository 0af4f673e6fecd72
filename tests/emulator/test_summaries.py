"""What the emulator says it has learnt, against the definitions in the user's units."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import dblquad, quad
from scipy.special import gammaln

import paims
from paims import diagnostics, gp, simulators


def correlation(X: np.ndarray, lengths: np.ndarray, nugget: float) -> np.ndarray:
    """Squared exponential correlation matrix with the nugget, from its definition."""
    scaled = X / lengths
    squares = ((scaled[:, None] - scaled[None]) ** 2).sum(axis=2)
    return np.exp(-0.5 * squares) + nugget * np.eye(len(X))


def regression(
    K: np.ndarray, H: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Coefficients, (H'K^-1 H)^-1 and S2 of generalised least squares, from their definitions."""
    inverse = np.linalg.inv(H.T @ np.linalg.solve(K, H))
    beta = inverse @ H.T @ np.linalg.solve(K, y)
    residual = y - H @ beta
    return beta, inverse, float(residual @ np.linalg.solve(K, residual))


@pytest.fixture(scope="module")
def single(runs: tuple[np.ndarray, np.ndarray]) -> paims.Emulator:
    """One component: everything has a closed form."""
    return paims.Emulator("squared_exponential", n_samples=300, random_state=0, goal="map").fit(
        *runs
    )


def test_single_point_predicts_as_the_definition_says(
    single: paims.Emulator, runs: tuple[np.ndarray, np.ndarray]
) -> None:
    X, y = runs
    H = np.column_stack([np.ones(len(X)), X])
    lengths, nugget = single.map_.length_scales, single.map_.nugget
    K = correlation(X, lengths, nugget)
    beta, inverse, S2 = regression(K, H, y)
    new = np.array([[0.33, 14.0], [1.1, 33.0]])
    scaled, runs_scaled = new / lengths, X / lengths
    t = np.exp(-0.5 * ((scaled[:, None] - runs_scaled[None]) ** 2).sum(axis=2))
    h = np.column_stack([np.ones(2), new])
    mean = h @ beta + t @ np.linalg.solve(K, y - H @ beta)
    g = h - t @ np.linalg.solve(K, H)
    term = 1.0 - np.einsum("ij,ji->i", t, np.linalg.solve(K, t.T))
    term += np.einsum("ij,jk,ik->i", g, inverse, g)
    variance = S2 / (len(y) - 3 - 2)
    predicted, std = single.predict(new, return_std=True)
    np.testing.assert_allclose(predicted, mean, rtol=1e-6)
    np.testing.assert_allclose(std, np.sqrt(variance * (term + nugget)), rtol=1e-6)
    _, smooth = single.predict(new, return_std=True, include_nugget=False)
    np.testing.assert_allclose(smooth, np.sqrt(variance * term), rtol=1e-6)
    mixture = single.predict_distribution(new)
    exact = stats.t(len(y) - 3, mean, np.sqrt(S2 / (len(y) - 3) * (term + nugget)))
    np.testing.assert_allclose(mixture.logpdf(mean + std), exact.logpdf(mean + std), rtol=1e-6)
    np.testing.assert_allclose(mixture.interval(0.9)[0], exact.ppf(0.05), rtol=1e-6)


@pytest.mark.parametrize(
    ("mean", "names", "basis"),
    [
        ("constant", ["1"], lambda X: np.ones((len(X), 1))),
        ("linear", ["1", "x1", "x2"], lambda X: np.column_stack([np.ones(len(X)), X])),
        (
            "quadratic",
            ["1", "x1", "x2", "x1^2", "x1*x2", "x2^2"],
            lambda X: np.column_stack(
                [np.ones(len(X)), X, X[:, 0] ** 2, X[:, 0] * X[:, 1], X[:, 1] ** 2]
            ),
        ),
        (
            lambda X: np.column_stack([2.0 + 0.0 * X[:, 0], np.log(X[:, 1])]),
            ["h1", "h2"],
            lambda X: np.column_stack([2.0 + 0.0 * X[:, 0], np.log(X[:, 1])]),
        ),
    ],
    ids=["constant", "linear", "quadratic", "function"],
)
def test_trend_and_variance_are_in_the_users_units(
    runs: tuple[np.ndarray, np.ndarray], mean: object, names: list[str], basis: object
) -> None:
    X, y = runs[0], 100.0 + 7.0 * runs[1]
    emulator = paims.Emulator(
        "squared_exponential", mean=mean, n_samples=300, random_state=0, goal="map"
    ).fit(X, y)
    H = basis(X)  # type: ignore[operator]
    q, n = H.shape[1], len(X)
    K = correlation(X, emulator.map_.length_scales, emulator.map_.nugget)
    beta, inverse, S2 = regression(K, H, y)
    scale = np.sqrt(S2 / (n - q) * np.diag(inverse))
    assert emulator.beta_["name"].tolist() == names
    np.testing.assert_allclose(emulator.beta_["mean"], beta, rtol=1e-4)
    np.testing.assert_allclose(
        emulator.beta_["std"], scale * np.sqrt((n - q) / (n - q - 2)), rtol=1e-4
    )
    exact = stats.t(n - q, beta, scale)
    np.testing.assert_allclose(emulator.beta_["lower"], exact.ppf(0.025), rtol=1e-4)
    np.testing.assert_allclose(emulator.beta_["median"], beta, rtol=1e-4)
    np.testing.assert_allclose(emulator.beta_["upper"], exact.ppf(0.975), rtol=1e-4)
    variance = stats.invgamma((n - q) / 2, scale=S2 / 2)
    for field, value in (
        ("mean", variance.mean()),
        ("std", variance.std()),
        ("lower", variance.ppf(0.025)),
        ("median", variance.median()),
        ("upper", variance.ppf(0.975)),
    ):
        assert emulator.sigma2_[field] == pytest.approx(value, rel=1e-4)


def test_variance_of_a_mixture_lies_between_its_components(emulator: paims.Emulator) -> None:
    S2 = emulator.posterior_.coefficients(emulator.ensemble_.draws).S2
    variance = stats.invgamma(17 / 2, scale=emulator.output_.square(S2) / 2)
    for field, level in (("lower", 0.025), ("median", 0.5), ("upper", 0.975)):
        share = emulator.ensemble_.weights @ variance.cdf(emulator.sigma2_[field])
        assert share == pytest.approx(level, abs=1e-9)


def test_evidence_is_the_density_of_the_outputs() -> None:
    rng = np.random.default_rng(4)
    X = np.sort(rng.random(9))[:, None] * 5.0 + 2.0
    y = 30.0 + 4.0 * np.sin(X[:, 0]) + 0.3 * rng.standard_normal(9)
    nugget, n = 1e-3, len(y)
    emulator = paims.Emulator(
        "squared_exponential",
        mean="constant",
        nugget=nugget,
        prior=gp.LogNormal(-2.0, 1.0),
        random_state=0,
    ).fit(X, y)
    scaled = (X - X.min()) / np.ptp(X)
    H = np.ones((n, 1))

    def log_likelihood(log_phi: float) -> float:
        K = correlation(scaled, np.exp(0.5 * np.array([log_phi])), nugget)
        _, inverse, S2 = regression(K, H, y)
        return float(
            gammaln((n - 1) / 2)
            - (n - 1) / 2 * np.log(np.pi * S2)
            - 0.5 * np.linalg.slogdet(K)[1]
            + 0.5 * np.log(inverse[0, 0])
        )

    shift = log_likelihood(-2.0)
    integral = quad(
        lambda t: np.exp(log_likelihood(t) - shift) * stats.norm.pdf(t, -2.0, 1.0), -9.0, 6.0
    )[0]
    # The prior of beta has density 1 for standardised outputs: 1/s in the user's units.
    truth = np.log(integral) + shift - np.log(y.std())
    assert emulator.log_evidence_error_ < 0.05
    assert abs(emulator.log_evidence_ - truth) < 4 * emulator.log_evidence_error_

    # The constants, from the integral over the trend and the variance at one point.
    K = correlation(scaled, np.exp([-1.0]), nugget)
    beta, inverse, S2 = regression(K, H, y)
    L = np.linalg.cholesky(K)
    peak = log_likelihood(-2.0)

    def joint(b: float, log_variance: float) -> float:
        residual = np.linalg.solve(L, y - b)
        log_normal = (
            -0.5 * n * (np.log(2 * np.pi) + log_variance)
            - np.log(np.diag(L)).sum()
            - 0.5 * residual @ residual * np.exp(-log_variance)
        )
        return float(np.exp(log_normal - peak))

    centre, width = np.log(S2 / n), np.sqrt(S2 / n * inverse[0, 0])
    found = dblquad(joint, centre - 3.5, centre + 5.0, beta[0] - 25 * width, beta[0] + 25 * width)[
        0
    ]
    assert found == pytest.approx(1.0, abs=2e-3)


def test_draws_are_in_physical_units(
    emulator: paims.Emulator, runs: tuple[np.ndarray, np.ndarray]
) -> None:
    u, ranges = emulator.result_.draws, np.ptp(runs[0], axis=0)
    assert emulator.draws_.dtype.names == ("length_scale_x1", "length_scale_x2", "nugget")
    np.testing.assert_allclose(
        emulator.draws_["length_scale_x2"], np.exp(0.5 * u[:, 1]) * ranges[1]
    )
    np.testing.assert_allclose(
        emulator.draws_["nugget"], 1e-12 + (1 - 1e-12) / (1 + np.exp(-u[:, 2])), rtol=1e-12
    )
    assert emulator.weights_.sum() == pytest.approx(1.0)
    matern = paims.Emulator(kernel="matern52", n_samples=300, random_state=0).fit(*runs)
    np.testing.assert_allclose(
        matern.draws_["length_scale_x1"], np.exp(matern.result_.draws[:, 0]) * ranges[0]
    )


def test_log_posterior_is_that_of_the_draws(emulator: paims.Emulator) -> None:
    some = emulator.draws_[:20]
    lengths = np.column_stack([some["length_scale_x1"], some["length_scale_x2"]])
    expected = emulator.result_.log_density[:20] - emulator.result_.log_evidence
    heavy = some["nugget"] > 1e-9  # Below, the nugget has lost the digits of z.
    np.testing.assert_allclose(
        emulator.log_posterior(lengths, some["nugget"])[heavy], expected[heavy], atol=1e-4
    )
    best = emulator.log_posterior(emulator.map_.length_scales[None], emulator.map_.nugget)
    assert best[0] == pytest.approx(emulator.map_.log_density, abs=1e-6)
    assert emulator.map_.log_density >= expected.max()


def test_best_point_is_a_top(emulator: paims.Emulator) -> None:
    steps = np.exp(np.linspace(-0.2, 0.2, 9))
    heights = [
        emulator.log_posterior(emulator.map_.length_scales * [[step, 1.0]], emulator.map_.nugget)[
            0
        ]
        for step in steps
    ]
    assert int(np.argmax(heights)) == 4


def test_modes_say_what_the_inputs_do() -> None:
    X = np.random.default_rng(1).random((40, 3)) * [1.0, 5.0, 100.0]
    y = np.sin(8.0 * X[:, 0]) + 0.4 * X[:, 1]
    emulator = paims.Emulator("squared_exponential", n_samples=400, random_state=0).fit(X, y)
    mode = emulator.modes_[0]
    assert "x3 hardly matters" in mode.says
    assert "x2 acts nearly linearly" in mode.says
    assert "x1 bends the output" in mode.says
    assert mode.effects[0] > mode.effects[1] > 0.1
    assert mode.effects[2] < 1e-3
    assert sum(m.mass for m in emulator.modes_) == pytest.approx(1.0, abs=0.02)
    text = repr(emulator.modes_)
    assert "length x3" in text
    assert mode.says in text
    table = emulator.modes_.to_array()
    assert table["length_scale_x1"][0] == mode.length_scales[0]
    assert table["says"][0] == mode.says
    assert isinstance(emulator.modes_[:1], type(emulator.modes_))
    assert "nugget" in repr(mode)


def test_total_effects_are_those_of_a_known_function() -> None:
    X = np.random.default_rng(1).random((60, 2))
    y = X[:, 0] + 2.0 * X[:, 1]  # Variances 1/12 and 4/12: a fifth and four fifths.
    emulator = paims.Emulator(
        "squared_exponential", mean="linear", n_samples=300, random_state=0
    ).fit(X, y)
    share = 4.0 * np.ptp(X[:, 1]) ** 2 / (np.ptp(X[:, 0]) ** 2 + 4.0 * np.ptp(X[:, 1]) ** 2)
    np.testing.assert_allclose(emulator.map_.effects, [1.0 - share, share], rtol=1e-6)
    ratio = emulator.map_.effects[1] / emulator.map_.effects[0]
    assert ratio == pytest.approx((2.0 * np.ptp(X[:, 1]) / np.ptp(X[:, 0])) ** 2, rel=1e-6)
    assert emulator.map_.curvatures.max() < 1e-3


def test_effects_are_the_sobol_indices_of_the_mode() -> None:
    simulator = simulators.branin
    X = simulator.design(18, 4)
    emulator = paims.Emulator("squared_exponential", n_samples=300, random_state=0).fit(
        X, simulator(X)
    )
    mode, posterior = emulator.map_, emulator.posterior_
    phi = posterior.kernel.from_length_scale(mode.length_scales / emulator.inputs_.range)
    u = posterior.from_physical(phi[None], np.array([mode.nugget]))
    exact = diagnostics.sobol_indices(posterior, u).total
    np.testing.assert_allclose(mode.effects, exact, rtol=1e-6)


def test_effects_with_a_trend_of_the_users_are_estimated() -> None:
    X = np.random.default_rng(1).random((60, 2))
    y = X[:, 0] + 2.0 * X[:, 1]
    emulator = paims.Emulator(
        "squared_exponential",
        mean=lambda X: np.column_stack([np.ones(len(X)), X]),
        n_samples=300,
        random_state=0,
    ).fit(X, y)
    np.testing.assert_allclose(emulator.map_.effects, [0.2, 0.8], atol=0.04)
