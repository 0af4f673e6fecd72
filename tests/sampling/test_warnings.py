"""A run that went wrong says so, and one that went well is silent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from tests import targets
from tests.sampling.kit import TOY, Floats, on_islands, reference_of, target_of

import paims
from paims.sampling import SampleResult, Status, _recycling, default_scheme
from paims.sampling import _assembly as assembling
from paims.sampling._level import next_level
from paims.sampling._recycling import Batch, Recycled
from paims.sampling._scheme import Plan
from paims.sampling._state import Progress, State
from paims.sampling._target import Target


def collected(run: Callable[[], SampleResult]) -> tuple[SampleResult, list[str]]:
    """The result of a run and the texts of its warnings, which are the result's own."""
    with pytest.warns(paims.SamplingWarning) as caught:
        result = run()
    texts = [str(w.message) for w in caught]
    assert tuple(texts) == result.warnings
    return result, texts


def test_too_few_points_in_twenty_dimensions() -> None:
    target = targets.two_gaussians(20)
    scheme = replace(default_scheme(), max_rounds=1, max_sweeps=3)
    _, texts = collected(
        lambda: paims.sample(
            target.log_density, reference_of(target), 500, scheme=scheme, random_state=0
        )
    )
    assert any("Global acceptance fell to" in text for text in texts)
    assert all("Run again with more n_samples" in text for text in texts)


def test_weights_that_cannot_be_relied_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Recycled, "pareto_k", 0.83)
    result, texts = collected(
        lambda: paims.sample(TOY.log_density, paims.Normal([0.0, 0.0], 9.0), 400, random_state=0)
    )
    (text,) = texts
    assert "Pareto k = 0.83" in text
    assert "draws of the last level" in text
    assert result.source == "last level"
    assert result.pareto_k == 0.83
    assert len(result.draws) == 400
    # the path's own evidence, with its larger error
    assert abs(result.log_evidence) < 5 * result.log_evidence_error
    levels = result.levels
    memory = np.clip(np.nan_to_num(levels["correlation"]), 0.0, 0.95)
    each = (1 / levels["effective_size"] - 1 / 400) * (1 + memory) / (1 - memory)
    variance = each.sum() + 1 / result.effective_size - 1 / 400
    assert result.log_evidence_error == pytest.approx(np.sqrt(variance), rel=1e-6)
    mean = np.mean(np.exp(result.island_log_evidence))
    assert result.log_evidence == pytest.approx(np.log(mean))


class TestDisagreement:
    """Two islands that have drifted apart, made by hand."""

    SCHEME = default_scheme(1)

    def notes(self, log_z: tuple[float, float], left: tuple[float, float]) -> list[str]:
        """Warnings of a state whose islands have these evidences and shares of the left mode."""
        rng = np.random.default_rng(0)
        target = target_of(self.log_density, paims.Uniform([-9.0] * 2, [9.0] * 2))
        even = on_islands(target, [self.draws(0.5, rng) for _ in range(2)])
        state = State(3, 1.0, even, log_z, seed=0, initial_sd=1.0, pool=self.reference(target))
        state, info = next_level(state, target, self.SCHEME)
        apart = on_islands(target, [self.draws(share, rng) for share in left])
        progress = Progress(replace(state, points=apart), None, (info,))
        plan = Plan(400, "posterior", self.SCHEME, ("x1", "x2"), seed=0)
        result = assembling.assemble(progress, plan, target, Status("converged", ""))
        return [text for text in result.warnings if "Pareto" not in text]

    def reference(self, target: Target) -> tuple[Batch, ...]:
        points = target.evaluate(target.reference.sample(200, np.random.default_rng(1)))
        other = replace(points, island=np.ones_like(points.island))
        return (Batch(None, points, points.log_m), Batch(None, other, points.log_m))

    def draws(self, share: float, rng: np.random.Generator) -> Floats:
        n_left = round(400 * share)
        x = rng.standard_normal((400, 2))
        x[:, 0] += np.where(np.arange(400) < n_left, -5.0, 5.0)
        return x

    def log_density(self, x: Floats) -> Floats:
        a, b = (stats.norm.logpdf(x[:, 0], c) for c in (-5.0, 5.0))
        return np.logaddexp(a, b) + stats.norm.logpdf(x[:, 1])

    @pytest.fixture
    def last_level(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The islands' own states are the result."""
        monkeypatch.setattr(Recycled, "pareto_k", 0.9)

    @pytest.mark.usefixtures("last_level")
    def test_agreement_is_silent(self) -> None:
        assert self.notes((-3.0, -3.05), (0.5, 0.52)) == []

    @pytest.mark.usefixtures("last_level")
    def test_evidence_of_the_paths(self) -> None:
        (text,) = self.notes((-3.0, -9.0), (0.5, 0.5))
        assert "islands disagree: their log evidences are 6.00 apart" in text
        assert "Run again with more n_samples" in text

    @pytest.mark.usefixtures("last_level")
    def test_masses(self) -> None:
        (text,) = self.notes((-3.0, -3.0), (0.2, 0.8))
        assert "disagree about the mass near" in text
        left = "near [-" in text
        assert ("0.200 and 0.800" if left else "0.800 and 0.200") in text

    def test_recycled_samples_compare_the_candidates_of_the_islands(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert self.notes((-3.0, -9.0), (0.5, 0.5)) == []  # not the result's own evidence
        right = _recycling._weighed

        def uneven(pool: Sequence[Batch]) -> Recycled:
            part = right(pool)
            return replace(part, log_weight=part.log_weight + 4.0 * part.points.island)

        monkeypatch.setattr(_recycling, "_weighed", uneven)
        (text,) = self.notes((-3.0, -3.0), (0.5, 0.5))
        assert "islands disagree" in text


def test_warnings_point_at_the_callers_line() -> None:
    with pytest.warns(paims.SamplingWarning) as caught:
        paims.sample(TOY.log_density, paims.Normal([0.0, 0.0], 9.0), 200, random_state=0,
                     max_levels=1)  # fmt: skip
    assert caught[0].filename == __file__


@pytest.mark.parametrize("seed", range(3))
def test_good_runs_are_silent(seed: int) -> None:
    # warnings are errors here
    result = paims.sample(TOY.log_density, paims.Normal([0.0, 0.0], 9.0), 400, random_state=seed)
    assert result.warnings == ()


def test_warnings_can_be_silenced_by_class() -> None:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", paims.SamplingWarning)
        result = paims.sample(
            TOY.log_density, paims.Normal([0.0, 0.0], 9.0), 200, random_state=0, max_levels=1
        )
    assert result.warnings
