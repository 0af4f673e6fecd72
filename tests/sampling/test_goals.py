"""The optimum as goal, and the paper's scheme."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from tests import targets
from tests.sampling.kit import Floats, reference_of

import paims


def uneven(x: Floats) -> Floats:
    """Four peaks of slightly different height, the best of them the narrowest."""
    centres = np.array([[2.0, 2.0], [-2.0, 2.0], [-2.0, -2.0], [2.0, -2.0]])
    heights, widths = np.array([3.0, 2.5, 2.4, 2.0]), np.array([0.25, 0.8, 0.8, 1.0])
    d2 = np.sum((x[:, None] - centres) ** 2, axis=2)
    return np.asarray(np.log(np.sum(np.exp(heights - 0.5 * d2 / widths**2), axis=1)))


BOX = paims.Uniform([-5.0, -5.0], [5.0, 5.0])


class TestOptimum:
    # There are no rounds at temperature 1: the posterior's weights may be unreliable, and say so.
    @pytest.mark.filterwarnings("ignore:The recycled importance weights:paims.SamplingWarning")
    @pytest.mark.parametrize("seed", range(3))
    def test_finds_the_best_of_several_peaks(self, seed: int) -> None:
        result = paims.sample(uneven, BOX, 400, goal="optimum", random_state=seed)
        top = minimize(lambda x: -uneven(x[None])[0], [2.0, 2.0]).fun
        assert result.goal == "optimum"
        assert result.best[1] == pytest.approx(-top, abs=0.02)
        np.testing.assert_allclose(result.best[0], [2.0, 2.0], atol=0.1)

    def test_draws_are_equal_and_of_the_last_level(self) -> None:
        result = paims.sample(uneven, BOX, 400, goal="optimum", random_state=0)
        assert len(result.draws) == 400
        np.testing.assert_allclose(result.weights, 1 / 400)
        assert result.source == "last level"
        assert result.levels["sd_log_density"][-1] == pytest.approx(np.std(result.log_density))

    def test_posterior_comes_with_it(self) -> None:
        result = paims.sample(uneven, BOX, 400, goal="optimum", random_state=0)
        assert result.posterior is not None
        assert result.posterior.goal == "posterior"
        assert result.posterior.log_evidence == result.log_evidence
        mass = np.exp([3.0, 2.5, 2.4, 2.0]) * np.array([0.25, 0.8, 0.8, 1.0]) ** 2
        truth = np.log(2 * np.pi * mass.sum())  # the tails outside of the box are 0.3 %
        assert abs(result.log_evidence - truth) < 5 * result.log_evidence_error + 0.02
        # masses are those of the density, not of the points near the optimum
        narrow = min(result.modes(), key=lambda m: np.linalg.norm(m.location - [2.0, 2.0]))
        assert narrow.mass == pytest.approx(mass[0] / mass.sum(), abs=0.03)
        assert result.posterior.warnings == ()

    @pytest.mark.parametrize(
        "target", [targets.himmelblau(), targets.two_gaussians(5)], ids=lambda t: t.name
    )
    def test_goes_past_temperature_one_to_nearly_optimal_points(
        self, target: targets.Target
    ) -> None:
        result = paims.sample(
            target.log_density, reference_of(target), 500, goal="optimum", random_state=0
        )
        assert result.levels["beta"][-1] > 1.0
        assert result.posterior is not None
        spread = np.std(result.posterior.log_density)
        assert np.std(result.log_density) < 0.3 * spread
        assert np.all(np.diff(result.levels["temperature"]) <= 0)

    def test_stops_when_the_density_varies_a_tenth_of_what_it_did_at_temperature_one(self) -> None:
        target = targets.himmelblau()
        result = paims.sample(
            target.log_density, reference_of(target), 500, goal="optimum", random_state=1
        )
        at_one = int(np.argmax(result.levels["beta"] == 1.0))
        sd = result.levels["sd_log_density"]
        assert sd[-1] <= 0.1 * sd[at_one] < sd[-2]
        assert "a tenth" in result.status.reason or "0.1 times" in result.status.reason

    def test_all_equal_optima_are_kept(self) -> None:
        # Four equal peaks: the set of optima is found, not one of them.
        def density(x: Floats) -> Floats:
            return -2 * np.sum((np.abs(x) - 2.0) ** 2, axis=1)

        result = paims.sample(density, BOX, 800, goal="optimum", random_state=1)
        share = np.bincount(2 * (result.draws[:, 0] > 0) + (result.draws[:, 1] > 0), minlength=4)
        assert np.min(share) / 800 > 0.1
        assert len(result.modes(min_mass=0.1)) == 4


class TestPaper:
    def test_runs_to_temperature_one(self) -> None:
        target = targets.himmelblau()
        result = paims.sample(
            target.log_density, reference_of(target), 2000, scheme="paper", random_state=0
        )
        assert result.status.name == "converged"
        assert result.levels["beta"][-1] == 1.0
        assert len(result.draws) == 2000
        np.testing.assert_allclose(result.weights, 1 / 2000)  # uniform final weights
        assert np.isnan(result.pareto_k)
        # one island: c_k = 2^-k c_0
        k = np.arange(len(result.levels))
        np.testing.assert_allclose(result.levels["spread"], 2.38 / np.sqrt(2) * 0.5**k)
        assert np.all(result.levels["n_clusters"] == 1)
        assert np.all(result.levels["n_sweeps"] == 1)
        assert len(result.island_log_evidence) == 1

    def test_every_level_keeps_half_of_the_effective_points(self) -> None:
        target = targets.himmelblau()
        result = paims.sample(
            target.log_density, reference_of(target), 1000, scheme="paper", random_state=1
        )
        before_last = result.levels["effective_size"][:-1]
        np.testing.assert_allclose(before_last, 500, rtol=1e-3)
        assert result.levels["effective_size"][-1] >= 500 - 1

    def test_evaluations_are_at_most_two_for_each_point_of_a_level(self) -> None:
        target = targets.himmelblau()
        result = paims.sample(
            target.log_density, reference_of(target), 1000, scheme="paper", random_state=2
        )
        assert np.all(result.levels["n_evaluations"] <= 2000)
        assert np.all(result.levels["n_evaluations"] > 500)  # none outside of the box

    def test_optimum_stops_by_the_papers_rule(self) -> None:
        result = paims.sample(uneven, BOX, 1000, scheme="paper", goal="optimum", random_state=0)
        first = next(paims.anneal(uneven, BOX, 1000, scheme="paper", random_state=0))
        sd = result.levels["sd_log_density"]
        assert sd[-1] <= 0.1 * first.state.initial_sd < sd[-2]
        assert result.best[1] == pytest.approx(3.0, abs=0.1)

    @pytest.mark.slow
    def test_evidence_and_masses_are_roughly_right(self) -> None:
        # Biased (lengths by weight, own markers), as the paper's scheme is: the bounds are wide.
        target = targets.himmelblau()
        rows = []
        for seed in range(8):
            result = paims.sample(
                target.log_density, reference_of(target), 2000, scheme="paper", random_state=seed
            )
            label = target.assign_modes(result.draws)
            rows.append(
                np.append(
                    np.bincount(label, result.weights, minlength=4) - target.mode_masses,
                    result.log_evidence - target.log_evidence,
                )
            )
        mean = np.mean(rows, axis=0)
        assert np.all(np.abs(mean[:4]) < 0.1)
        assert abs(mean[4]) < 0.3
