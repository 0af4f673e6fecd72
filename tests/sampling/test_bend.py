"""Maps that straighten clusters: exact as maps, found where they should be, and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm
from tests.sampling.kit import BEND, TOY, Floats, bent_markers, brute_kernels

import paims
from paims.sampling import SampleResult, _clusters, default_scheme
from paims.sampling._bend import Bend, Coordinate, entered, fit_bend
from paims.sampling._checkpoint import read_checkpoint
from paims.sampling._clusters import fit_clusters
from paims.sampling._markers import marker_mixtures
from paims.sampling._proposal import MarkerMixture
from paims.sampling._warp import Warp

EDGED = Bend(
    (0.3, 0.2),
    (0.2, 0.1),
    (
        Coordinate(0, (0.0, 1.0), -0.5, 0.9, (), (), None),
        Coordinate(1, (-1.0, 1.0), 0.2, 0.5, ((0, -1, 0.4), (0, 0, -0.1)), ((0, -1, 0.2),), None),
    ),
)
ANYWHERE = np.array([-np.inf, -np.inf]), np.array([np.inf, np.inf])


def equal(n: int) -> Floats:
    return np.full(n, 1.0 / n)


class TestMap:
    @pytest.mark.parametrize("bend", [BEND, EDGED], ids=["free", "edged"])
    def test_there_and_back(self, bend: Bend) -> None:
        y = np.random.default_rng(0).normal(size=(500, 2)) * 2
        x = bend.bent(y)
        back, _ = bend.straightened(x)
        np.testing.assert_allclose(back, y, rtol=1e-7, atol=1e-7)

    @pytest.mark.parametrize("bend", [BEND, EDGED], ids=["free", "edged"])
    def test_jacobian_is_that_of_the_map(self, bend: Bend) -> None:
        x = bend.bent(np.random.default_rng(1).normal(size=(50, 2)))
        h = 1e-6
        columns = [
            (bend.straightened(x + h * e)[0] - bend.straightened(x - h * e)[0]) / (2 * h)
            for e in np.eye(2)
        ]
        numeric = np.linalg.slogdet(np.stack(columns, axis=2))[1]
        np.testing.assert_allclose(bend.straightened(x)[1], numeric, atol=1e-4)

    def test_beyond_an_edge_there_is_nothing(self) -> None:
        y, log_jacobian = EDGED.straightened(np.array([[-0.1, 0.0], [0.5, 1.2], [0.5, 0.0]]))
        assert np.isneginf(log_jacobian[:2]).all()
        assert np.isfinite(log_jacobian[2])
        assert np.isfinite(y).all()

    def test_no_draw_leaves_the_box_or_has_no_density(self) -> None:
        x = EDGED.bent(np.array([[-50.0, 0.0], [50.0, 0.0], [0.0, -90.0], [0.0, 90.0]]))
        assert np.isfinite(EDGED.straightened(x)[1]).all()

    def test_file_gives_the_same_bits(self) -> None:
        x = np.random.default_rng(2).normal(size=(100, 2))
        for bend in (BEND, EDGED):
            again = Bend.from_stored(json.loads(json.dumps(bend.to_store())))
            for a, b in zip(again.straightened(x), bend.straightened(x), strict=True):
                np.testing.assert_array_equal(a, b)


class TestWarp:
    def test_tails_are_exponential_and_joined_smoothly(self) -> None:
        t = np.log(np.random.default_rng(0).exponential(size=4000))
        warp = Warp.of(t, equal(4000))
        assert warp is not None
        for knot in (warp.t[0], warp.t[-1]):
            z, log_slope = warp.forward(knot + np.array([-1e-9, 1e-9]))
            assert np.ptp(z) < 1e-7
            assert np.ptp(log_slope) < 1e-6
        far = warp.t[0] - np.array([10.0, 20.0, 30.0])
        z, log_slope = warp.forward(far)
        log_density = norm.logpdf(z) + log_slope + np.log(np.abs(z))
        np.testing.assert_allclose(np.diff(log_density, 2), 0.0, atol=1e-9)
        # That of the values is e^t, over which this one is somewhat heavier.
        assert 0.5 < (log_density[0] - log_density[1]) / 10.0 < 1.1

    def test_values_that_repeat_have_none(self) -> None:
        assert Warp.of(np.repeat([0.0, 1.0], 50), equal(100)) is None


def _funnel(n: int, rng: np.random.Generator) -> tuple[Floats, float]:
    v = 2 * rng.standard_normal(n)
    x = np.column_stack([rng.standard_normal((n, 2)) * np.exp(v / 2)[:, None], v])
    return x, 1.5 * np.log(2 * np.pi * np.e) + np.log(2)


def _valley(n: int, rng: np.random.Generator) -> tuple[Floats, float]:
    a = rng.standard_normal(n)
    x = np.column_stack([a**2 + 0.1 * rng.standard_normal(n), a])
    return x, np.log(2 * np.pi * np.e) + np.log(0.1)


def _log_gamma(n: int, rng: np.random.Generator) -> tuple[Floats, float]:
    return np.log(rng.exponential(size=(n, 3))), 3 * (1 + np.euler_gamma)


SHAPES = [(_funnel, 0.1), (_valley, 0.1), (_log_gamma, 0.1)]


class TestFit:
    @pytest.mark.parametrize(("shape", "close"), SHAPES, ids=lambda v: getattr(v, "__name__", ""))
    def test_fresh_points_are_described_nearly_as_well_as_by_the_truth(
        self, shape: Callable[[int, np.random.Generator], tuple[Floats, float]], close: float
    ) -> None:
        # mean log density of fresh points: at most minus the entropy, that of the truth
        rng = np.random.default_rng(3)
        x, entropy = shape(1500, rng)
        fresh, _ = shape(20_000, rng)
        box = np.full(x.shape[1], -np.inf), np.full(x.shape[1], np.inf)
        bent, label = fit_clusters(x, equal(len(x)), box=box)
        plain, _ = fit_clusters(x, equal(len(x)))
        assert len(bent) == 1
        assert not label.any()
        assert bent.log_responsibilities(fresh)[0] > -entropy - close
        assert plain.log_responsibilities(fresh)[0] < -entropy - close

    def test_piled_up_at_an_edge(self) -> None:
        rng = np.random.default_rng(4)
        x = 0.01 * rng.exponential(size=(1500, 2))
        fitted = fit_bend(x, equal(1500), np.zeros(2), np.ones(2))
        assert fitted is not None
        assert all(one.edges == (0.0, 1.0) for one in fitted[0].coordinates)
        clusters, _ = fit_clusters(x, equal(1500), box=(np.zeros(2), np.ones(2)))
        fresh = 0.01 * rng.exponential(size=(20_000, 2))
        assert clusters.log_responsibilities(fresh)[0] > -2 * (1 + np.log(0.01)) - 0.1

    @pytest.mark.parametrize("seed", range(10))
    def test_gaussian_points_have_no_map(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((1000, 5)) @ rng.standard_normal((5, 5))
        assert fit_bend(x, equal(1000), np.full(5, -np.inf), np.full(5, np.inf)) is None

    def test_modes_apart_are_split_not_bent(self) -> None:
        rng = np.random.default_rng(5)
        x = 0.1 * rng.standard_normal((1000, 2))
        x[:300] += 3.0
        clusters, _ = fit_clusters(x, equal(1000), box=ANYWHERE)
        assert len(clusters) == 2
        assert not any(clusters.bends)

    def test_few_points_have_no_map(self) -> None:
        x, _ = _valley(40, np.random.default_rng(6))
        assert fit_bend(x, equal(40), *ANYWHERE) is None

    def test_points_on_a_line(self) -> None:
        t = np.random.default_rng(7).standard_normal(400)
        clusters, _ = fit_clusters(np.column_stack([t, t]), equal(400), box=ANYWHERE)
        assert np.isfinite(clusters.chol).all()


class TestMixture:
    @pytest.fixture
    def mixture(self, request: pytest.FixtureRequest) -> MarkerMixture:
        rng = np.random.default_rng(8)
        theta = TOY.sample(60, rng)
        label = (theta[:, 0] > 0.9).astype(np.int64)
        markers = bent_markers(theta, TOY.log_density(theta), rng.gamma(1.0, size=60), label)
        return MarkerMixture.shrinking(markers, getattr(request, "param", 0.5))

    @pytest.mark.parametrize("mixture", [0.5, 1.0], indirect=True)
    def test_density_is_the_sum_of_the_kernels(self, mixture: MarkerMixture) -> None:
        x = TOY.sample(40, np.random.default_rng(9))
        log_p = TOY.log_density(x)
        kernels = brute_kernels(mixture, x)
        local = np.minimum(0.0, log_p[:, None] - mixture.markers.log_p)
        plain, p_hat = mixture.log_densities(x, log_p)
        np.testing.assert_allclose(plain, logsumexp(kernels, axis=1), rtol=1e-9)
        np.testing.assert_allclose(p_hat, logsumexp(kernels + local, axis=1), rtol=1e-9)

    @pytest.mark.parametrize("mixture", [0.5, 1.0], indirect=True)
    def test_draws_have_that_density(self, mixture: MarkerMixture) -> None:
        # E_q[f / q] is the integral of f, for a density f with lighter tails
        x, _ = mixture.sample(20_000, np.random.default_rng(10))
        for centre in TOY.mean:
            f = norm.logpdf(x, centre, 0.1).sum(axis=1)
            ratio = np.exp(f - mixture.log_density(x))
            error = np.std(ratio) / np.sqrt(len(x))
            assert abs(np.mean(ratio) - 1.0) < 5 * error
            assert error < 0.1

    def test_without_an_own_kernel(self, mixture: MarkerMixture) -> None:
        own = np.arange(60)
        whole = mixture.log_density(mixture.markers.theta)
        kernels = brute_kernels(mixture, mixture.markers.theta)
        kernels[own, own] = -np.inf
        rest = np.log1p(-mixture.markers.weight)
        np.testing.assert_allclose(
            mixture.log_density_without(own, whole), logsumexp(kernels, axis=1) - rest, rtol=1e-6
        )


def test_probit_of_an_interval() -> None:
    e, log_slope = entered(np.array([1.0, 2.0, 3.5]), (1.0, 3.0))
    assert e[1] == pytest.approx(0.0)
    assert log_slope[1] == pytest.approx(0.5 * np.log(2 * np.pi) - np.log(2.0))
    assert np.isfinite(e[0])
    assert np.isneginf(log_slope[2])


def valley(x: Floats) -> Floats:
    """A curved valley of unit mass in the plane, half in the box: x_1 is above x_0^2 by 0.1."""
    inside = norm.logpdf(x[:, 0]) + norm.logpdf(x[:, 1], x[:, 0] ** 2, 0.1)
    return np.asarray(inside)


BOX = paims.Uniform([0.0, -1.0], [6.0, 30.0])  # cuts the valley in the middle: log mass -log 2


class TestRuns:
    def run(self, **options: Any) -> SampleResult:
        settings = {"n_samples": 600, "random_state": 1, "progress": False}
        return paims.sample(valley, BOX, **(settings | options))

    def test_a_valley_that_an_edge_cuts(self) -> None:
        for seed in range(3):
            result = self.run(random_state=seed)
            assert abs(result.log_evidence + np.log(2)) < 4 * result.log_evidence_error + 0.01
            assert result.log_evidence_error < 0.05
            assert result.mean[0] == pytest.approx(np.sqrt(2 / np.pi), abs=0.03)

    def test_maps_are_used_and_islands_stay_apart(self) -> None:
        last = list(paims.anneal(valley, BOX, 600, random_state=1))[-1].state
        mixtures = {batch.mixture for batch in last.pool if batch.mixture is not None}
        assert any(any(mixture.markers.clusters.bends) for mixture in mixtures)
        rows = [{row.tobytes() for row in last.points.theta[own]} for own in last.islands]
        assert not rows[0] & rows[1]

    def test_maps_are_taken_where_the_other_island_says_so(self) -> None:
        state = list(paims.anneal(valley, BOX, 600, random_state=1))[-1].state
        weight = np.full(len(state.points), 2.0 / len(state.points))
        box = np.array([0.0, -1.0]), np.array([6.0, 30.0])
        given = state, 1.0, weight, replace(default_scheme(), bending=1.0)
        *_, plain = marker_mixtures(*given, np.random.default_rng(0))
        *_, bent = marker_mixtures(*given, np.random.default_rng(0), box)
        assert bent > plain
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_clusters, "fit_bend", lambda *_: (BEND, 99.0))
            *_, unbent = marker_mixtures(*given, np.random.default_rng(0), box)
        assert unbent == plain

    def test_any_number_of_threads(self) -> None:
        one, two = self.run(n_jobs=1), self.run(n_jobs=2)
        assert one.draws.tobytes() == two.draws.tobytes()
        assert one.weights.tobytes() == two.weights.tobytes()

    @pytest.mark.filterwarnings("ignore::paims.SamplingWarning")
    def test_goes_on_from_a_checkpoint(self, tmp_path: Path) -> None:
        whole = self.run()
        path = tmp_path / "run.h5"
        self.run(checkpoint=path, max_evaluations=whole.n_evaluations - 1)
        state = read_checkpoint(path, None).progress.state
        assert state is not None
        mixtures = {batch.mixture for batch in state.pool if batch.mixture is not None}
        assert any(any(mixture.markers.clusters.bends) for mixture in mixtures)
        for batch in state.pool:  # what was stored is what the points were drawn from
            if batch.mixture is not None:
                found = batch.mixture.log_density(batch.points.theta)
                np.testing.assert_array_equal(found, batch.log_q)
        again = paims.resume(path, valley, progress=False)
        assert again.draws.tobytes() == whole.draws.tobytes()
        assert again.log_evidence == whole.log_evidence

    def test_none_where_the_scheme_has_none(self) -> None:
        scheme = replace(default_scheme(), bending=0.0)
        last = list(paims.anneal(valley, BOX, 600, scheme=scheme, random_state=1))[-1].state
        for batch in last.pool:
            assert batch.mixture is None or not any(batch.mixture.markers.clusters.bends)
