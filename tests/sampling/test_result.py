"""What a run gives back: weighted summaries, resampling, modes, tables, other people's formats."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from tests.sampling.kit import TOY, Floats

import paims
from paims.sampling import SampleResult, Status
from paims.sampling._assembly import level_table
from paims.sampling._state import LevelInfo


def result_of(draws: Floats, weights: Floats | None = None, **changes: object) -> SampleResult:
    n = len(draws)
    w = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
    log_density = TOY.log_density(draws) if draws.shape[1] == 2 else -0.5 * np.sum(draws**2, 1)
    base = SampleResult(
        draws=draws,
        log_density=log_density,
        weights=w,
        names=tuple(f"x{i + 1}" for i in range(draws.shape[1])),
        levels=level_table([]),
        log_evidence=-1.25,
        log_evidence_error=0.5,
        island_log_evidence=(-1.2, -1.3),
        n_evaluations=1234,
        n_nan=0,
        pareto_k=0.2,
        status=Status("converged", "temperature 1 reached"),
        goal="posterior",
        source="recycled",
        density_fn=TOY.log_density,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def weighted() -> SampleResult:
    """Draws of a wide Gaussian, weighted for the toy."""
    rng = np.random.default_rng(0)
    wide = paims.Normal([0.0, 0.0], 6.0)
    x = wide.sample(20_000, rng)
    return result_of(x, np.exp(TOY.log_density(x) - wide.log_density(x)))


class TestMoments:
    def test_mean_and_sd_are_weighted(self, weighted: SampleResult) -> None:
        sd = np.sqrt(TOY.second_moment - TOY.first_moment**2)
        error = sd / np.sqrt(weighted.effective_size)
        assert np.all(np.abs(weighted.mean - TOY.first_moment) < 5 * error)
        assert np.all(np.abs(weighted.sd / sd - 1) < 5 / np.sqrt(weighted.effective_size))

    def test_effective_size(self) -> None:
        result = result_of(np.zeros((3, 2)), np.array([2.0, 1.0, 1.0]))
        assert result.effective_size == pytest.approx(16 / 6)

    def test_best(self, weighted: SampleResult) -> None:
        where, value = weighted.best
        assert value == weighted.log_density.max()
        assert TOY.log_density(where[None])[0] == pytest.approx(value)
        where[:] = 99.0  # a copy: the draws stay
        assert weighted.best[1] == value
        assert np.max(np.abs(weighted.best[0])) < 99.0


class TestQuantile:
    def test_of_equal_weights(self) -> None:
        result = result_of(np.arange(101.0)[::-1, None])
        np.testing.assert_allclose(result.quantile(0.5), [50.0])
        np.testing.assert_allclose(result.quantile([0.1, 0.9]), [[10.0], [90.0]])

    def test_draws_without_weight_do_not_count(self) -> None:
        weights = np.array([0.5, 0.5, 1e-12, 1e-12])
        result = result_of(np.array([[0.0], [1.0], [0.9], [7.0]]), weights)
        np.testing.assert_array_equal(result.quantile([0.2, 0.4, 0.6, 0.99])[:, 0], [0, 0, 1, 1])

    def test_of_weights(self, weighted: SampleResult) -> None:
        exact = TOY.sample(400_000, np.random.default_rng(1))
        q = [0.02, 0.3, 0.5, 0.95]
        found = weighted.quantile(q)
        assert found.shape == (4, 2)
        for i in range(2):
            reached = np.searchsorted(np.sort(exact[:, i]), found[:, i]) / len(exact)
            error = np.sqrt(0.25 / weighted.effective_size)
            assert np.max(np.abs(reached - q)) < 5 * error

    def test_shape_and_ends(self, weighted: SampleResult) -> None:
        assert weighted.quantile(0.5).shape == (2,)
        equal = result_of(weighted.draws)
        np.testing.assert_allclose(equal.quantile(0.0), equal.draws.min(axis=0))
        np.testing.assert_allclose(equal.quantile(1.0), equal.draws.max(axis=0))

    @pytest.mark.parametrize("q", [-0.1, 1.1, np.nan])
    def test_outside_zero_and_one_is_refused(self, weighted: SampleResult, q: float) -> None:
        with pytest.raises(ValueError, match=r"between 0 and 1; got"):
            weighted.quantile(q)


class TestResample:
    def test_follows_the_weights(self, weighted: SampleResult) -> None:
        draws = weighted.resample(20_000, random_state=0)
        assert draws.shape == (20_000, 2)
        narrow = weighted.weights[weighted.draws[:, 0] > 0.6].sum()
        assert np.mean(draws[:, 0] > 0.6) == pytest.approx(narrow, abs=1e-3)  # systematic: even

    def test_random_order_and_repeatable(self, weighted: SampleResult) -> None:
        a, b = (weighted.resample(2000, random_state=4) for _ in range(2))
        np.testing.assert_array_equal(a, b)
        assert not np.array_equal(a, weighted.resample(2000, random_state=5))
        assert abs(np.corrcoef(a[1:, 0], a[:-1, 0])[0, 1]) < 5 / np.sqrt(2000)

    def test_takes_a_generator(self, weighted: SampleResult) -> None:
        rng = np.random.default_rng(0)
        assert not np.array_equal(weighted.resample(50, rng), weighted.resample(50, rng))

    def test_no_draws_are_refused(self, weighted: SampleResult) -> None:
        with pytest.raises(ValueError, match="n must be at least 1; got 0"):
            weighted.resample(0)


class TestModes:
    # the narrow mode stands on the slope of the wide one
    def test_masses_are_weighted(self, weighted: SampleResult) -> None:
        modes = weighted.modes(min_mass=0.05)
        assert len(modes) == 2
        assert sum(mode.mass for mode in modes) == pytest.approx(1.0, abs=1e-6)
        assert np.linalg.norm(modes[0].location - TOY.mean[1]) < 0.3

    def test_climbing_reaches_the_tops(self, weighted: SampleResult) -> None:
        plain, climbed = weighted.modes(0.05), weighted.modes(0.05, climb=True)
        for before, after in zip(plain, climbed, strict=True):
            assert after.log_density >= before.log_density
            near = after.location + 1e-3 * np.random.default_rng(0).standard_normal((200, 2))
            assert np.max(TOY.log_density(near)) < after.log_density + 1e-7
            assert after.mass == before.mass

    def test_climbing_needs_the_density(self, weighted: SampleResult) -> None:
        with pytest.raises(ValueError, match=r"climb=True needs the density.*Use climb=False"):
            replace(weighted, density_fn=None).modes(climb=True)

    def test_of_an_optimum_are_those_of_its_posterior(self, weighted: SampleResult) -> None:
        top = result_of(np.tile([1.5, 0.5], (30, 1)), goal="optimum", posterior=weighted)
        masses = [mode.mass for mode in top.modes(min_mass=0.05)]
        assert masses == [mode.mass for mode in weighted.modes(min_mass=0.05)]


class TestText:
    def test_summary_has_a_line_for_each_parameter(self, weighted: SampleResult) -> None:
        text = replace(
            weighted, names=("length", "a_rather_long_name"), warnings=("look out",)
        ).summary()
        lines = text.splitlines()
        assert lines[1].split()[0] == "length"
        assert lines[2].split()[0] == "a_rather_long_name"
        values = [float(v) for v in lines[1].split()[1:]]
        low, middle, high = weighted.quantile([0.05, 0.5, 0.95])[:, 0]
        expected = [weighted.mean[0], weighted.sd[0], low, middle, high]
        np.testing.assert_allclose(values, expected, rtol=1e-3, atol=1e-4)
        assert "log evidence -1.2500 +- 0.5000" in text
        assert "1234 evaluations" in text
        assert "converged: temperature 1 reached" in text
        assert lines[-1] == "warning: look out"

    def test_one_parameter(self) -> None:
        assert "x1" in result_of(np.zeros((5, 1))).summary()

    def test_repr_is_short_and_str_is_the_summary(self, weighted: SampleResult) -> None:
        assert "\n" not in repr(weighted)
        assert "20000 draws" in repr(weighted)
        assert str(weighted) == weighted.summary()


class TestOtherFormats:
    def test_inference_data(self, weighted: SampleResult) -> None:
        pytest.importorskip("arviz_base", reason="ArviZ is an extra")
        data = weighted.to_inference_data(random_state=1)
        assert list(data.posterior.data_vars) == ["x1", "x2"]
        assert data.posterior.sizes == {"chain": 1, "draw": int(weighted.effective_size)}
        assert data.attrs["log_evidence"] == -1.25
        assert data.attrs["inference_library"] == "paims"
        x = np.column_stack([data.posterior[name].values[0] for name in ("x1", "x2")])
        np.testing.assert_allclose(data.sample_stats["lp"].values[0], TOY.log_density(x))
        assert np.mean(x[:, 0]) == pytest.approx(weighted.mean[0], abs=0.05)

    def test_inference_data_of_a_number(self, weighted: SampleResult) -> None:
        pytest.importorskip("arviz_base", reason="ArviZ is an extra")
        data = weighted.to_inference_data(n_draws=77)
        assert data.posterior.sizes["draw"] == 77

    def test_without_arviz_says_what_to_install(
        self, weighted: SampleResult, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import sys

        monkeypatch.setitem(sys.modules, "arviz_base", None)
        with pytest.raises(ImportError, match=r"pip install 'paims\[arviz\]'"):
            weighted.to_inference_data()

    def test_pickles_without_the_density(self) -> None:
        local = result_of(np.zeros((3, 2)), density_fn=lambda x: x[:, 0])
        back = pickle.loads(pickle.dumps(local))
        np.testing.assert_array_equal(back.draws, local.draws)
        assert back.density_fn is None
        assert back.status == local.status

    def test_level_table(self) -> None:
        info = LevelInfo(
            level=1, beta=0.25, temperature=4.0, effective_size=99.5, local_acceptance=0.5,
            global_acceptance=0.4, second_acceptance=0.3, spread=0.6, n_clusters=3, n_sweeps=2,
            correlation=0.1, sd_log_density=7.0, best_log_density=-1.0, unique_share=0.9,
            n_evaluations=500, log_z=(0.0, 0.1),
        )  # fmt: skip
        table = level_table([info, replace(info, level=2)])
        assert table["level"].tolist() == [1, 2]
        for name in table.dtype.names:
            assert table[name][0] == getattr(info, name)
        for name in ("beta", "temperature", "effective_size", "local_acceptance", "spread",
                     "global_acceptance", "second_acceptance", "sd_log_density",
                     "n_evaluations", "unique_share"):  # fmt: skip
            assert name in table.dtype.names
        assert len(level_table([])) == 0

    def test_is_frozen(self, weighted: SampleResult) -> None:
        with pytest.raises(AttributeError):
            weighted.log_evidence = 0.0  # type: ignore[misc]
        assert copy.copy(weighted).log_evidence == weighted.log_evidence
