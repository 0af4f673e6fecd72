"""Figures show the numbers that they are given, on the axes that they are given."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402

from paims import diagnostics, plots  # noqa: E402
from paims.gp import Posterior, Predictive  # noqa: E402
from paims.sampling import Mode, SampleResult, Status  # noqa: E402

RNG = np.random.default_rng(0)
SCORES = np.concatenate([RNG.normal(size=48), [4.0, -3.5]])
MARGINALS = SimpleNamespace(
    components=SimpleNamespace(
        means=np.linspace(0, 1, 50)[None], scales=np.ones((1, 50)), dof=np.inf
    ),
    weights=np.ones(1),
)
RESIDUALS = diagnostics.standardised_residuals(SCORES + np.linspace(0, 1, 50), MARGINALS)
JOINT = diagnostics.cholesky_errors(SCORES, np.zeros(50), np.eye(50) + 0.1)
EIGEN = diagnostics.eigen_errors(SCORES, np.zeros(50), np.eye(50) + 0.1)
QQ = diagnostics.quantile_quantile(SCORES)
DISTANCE = diagnostics.mahalanobis(SCORES, np.zeros(50), np.eye(50))
PIT = RNG.random(60) ** 2
COVERAGE = diagnostics.coverage_curve(PIT)
UNIFORMITY = diagnostics.uniformity(PIT)
X = RNG.random((20, 3))
POSTERIOR = Posterior(X, np.sin(3 * X[:, 0]) + X[:, 1] ** 2, mean="constant")
DRAWS = np.column_stack([RNG.normal(0, 0.3, (12, 3)), np.full(12, -8.0)])
SCREENING = diagnostics.screen(POSTERIOR, DRAWS, names=["depth", "angle", "mass"])
LOO = diagnostics.leave_one_out(
    RNG.normal(size=8), Predictive(RNG.normal(size=(200, 8)), np.full((200, 8), 0.4), 30)
)
LEVELS = np.array(
    [(1, 9.0, 5e2, 0.6, 0.7, 0.2), (2, 3.0, 5e2, 0.5, 0.8, 0.3), (3, 1.0, 7e2, 0.7, 0.6, 0.2)],
    dtype=[(n, float) for n in ("level", "temperature", "effective_size", "local_acceptance",
                                "global_acceptance", "second_acceptance")],
)  # fmt: skip


def sample_result(d: int = 3) -> SampleResult:
    draws = np.vstack([RNG.normal(-2, 0.5, (300, d)), RNG.normal(2, 0.3, (100, d))])
    return SampleResult(
        draws=draws, log_density=np.zeros(400), weights=np.full(400, 1 / 400),
        names=tuple(f"u{i}" for i in range(d)), levels=LEVELS, log_evidence=0.0,
        log_evidence_error=0.0, island_log_evidence=(0.0, 0.0), n_evaluations=1, n_nan=0,
        pareto_k=0.1, status=Status("converged", ""), goal="posterior", source="recycled",
    )  # fmt: skip


MODES = [
    Mode(np.array([-2.0, -1.5, -2.5]), 0.0, 0.75, 0.02, np.full(3, -2.0), np.ones(3)),
    Mode(np.array([2.0, 2.5, 1.5]), -1.0, 0.25, 0.02, np.full(3, 2.0), np.ones(3)),
]
GRID = np.linspace(-3.0, 3.0, 31)
HEIGHT = GRID[:, None] ** 2 + 2.0 * GRID[None] ** 2
UNSTABLE = np.where(GRID[:, None] > 2.0, np.inf, HEIGHT)
CLOUDS = [
    plots.LevelCloud(level, RNG.normal(size=(50, 2)), temperature, first=0.7, second=0.5)
    for level, temperature in enumerate((np.inf, 12.5, 1.0))
]
QUANTILES = np.sort(RNG.normal(size=(5, 3)), axis=0)
SINGLE: dict[str, Callable[[Any], Axes]] = {
    "level_curves": lambda ax: plots.level_curves(
        GRID, GRID, UNSTABLE, ax, marks={"A": (0.0, 1.0)}, labels=("a", "b")
    ),
    "box_plots": lambda ax: labelled(plots.box_plots(QUANTILES, ["a", "b", "c"], ax)),
    "spread": lambda ax: plots.spread(
        {"one": SCORES, "two": SCORES}, ax, marks={"paper": {"one": 1.0}}, label="error"
    ),
    "curve": lambda ax: plots.curve(
        GRID, GRID, GRID - 1, GRID + 1, ax, truth=GRID, runs=([0.0], [0.0]), labels=("x", "y")
    ),
    "residuals": lambda ax: plots.residuals(RESIDUALS, ax),
    "joint_errors": lambda ax: plots.joint_errors(JOINT, ax),
    "eigen_errors": lambda ax: plots.joint_errors(EIGEN, ax),
    "quantile_quantile": lambda ax: plots.quantile_quantile(QQ, ax),
    "mahalanobis": lambda ax: plots.mahalanobis(DISTANCE, ax),
    "pareto_k": lambda ax: plots.pareto_k(LOO, ax),
    "coverage": lambda ax: plots.coverage(COVERAGE, ax),
    "pit_histogram": lambda ax: plots.pit_histogram(UNIFORMITY, ax),
    "length_scales": lambda ax: plots.length_scales(SCREENING.length_scales, ax),
    "sobol": lambda ax: plots.sobol(SCREENING.sobol, ax),
    "main_effect": lambda ax: plots.main_effect(SCREENING.effects, 1, ax),
}


def labelled(ax: Axes) -> Axes:
    """Boxes are labelled below each, not below all."""
    assert [text.get_text() for text in ax.get_xticklabels()] == ["a", "b", "c"]
    ax.set_xlabel("x")
    return ax


@pytest.fixture(autouse=True)
def no_figure_is_left() -> Iterator[None]:
    plt.close("all")
    before = dict(matplotlib.rcParams)
    yield
    assert dict(matplotlib.rcParams) == before
    plt.close("all")


def drawn(ax: Axes, marker: str) -> set[tuple[float, float]]:
    """Points drawn with a marker."""
    return {
        (round(float(x), 9), round(float(y), 9))
        for line in ax.lines
        if line.get_marker() == marker
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    }


def pairs_of(x: Any, y: Any) -> set[tuple[float, float]]:
    return {(round(float(a), 9), round(float(b), 9)) for a, b in zip(x, y, strict=True)}


@pytest.mark.parametrize("name", SINGLE)
def test_draws_on_the_axes_given_and_returns_them(name: str) -> None:
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert SINGLE[name](ax) is ax
    assert plt.get_fignums() == []
    assert ax.get_xlabel()
    ax.figure.canvas.draw()


@pytest.mark.parametrize("name", SINGLE)
def test_makes_a_figure_without_axes(name: str) -> None:
    ax = SINGLE[name](None)
    assert plt.get_fignums() == [ax.figure.number]
    ax.figure.canvas.draw()


def test_residuals_inside_and_outside() -> None:
    ax = plots.residuals(RESIDUALS)
    outside = np.abs(RESIDUALS.scores) > 1.96
    assert drawn(ax, "o") == pairs_of(RESIDUALS.mean[~outside], RESIDUALS.scores[~outside])
    assert drawn(ax, "X") == pairs_of(RESIDUALS.mean[outside], RESIDUALS.scores[outside])
    texts = [text.get_text() for text in ax.texts]
    assert "48" in texts  # the farthest, by its number
    assert f"{RESIDUALS.n_outside} of 50 outside 95 %" in texts
    low, high = ax.get_ylim()
    assert low < -4.0 < 4.0 < high
    against = plots.residuals(RESIDUALS, x=np.arange(50), label="depth")
    assert against.get_xlabel() == "depth"
    assert (48.0, round(float(RESIDUALS.scores[48]), 9)) in drawn(against, "X")


def test_joint_errors_stand_in_their_order() -> None:
    ax = plots.joint_errors(JOINT)
    everything = drawn(ax, "o") | drawn(ax, "X")
    assert everything == pairs_of(np.arange(1, 51), JOINT.errors)
    assert ax.get_xlabel() == "pivoting order"
    assert "eigen" in plots.joint_errors(EIGEN).get_xlabel()


def test_quantile_quantile() -> None:
    ax = plots.quantile_quantile(QQ)
    assert drawn(ax, "o") | drawn(ax, "X") == pairs_of(QQ.theoretical, QQ.ordered)
    assert (round(float(QQ.theoretical[-1]), 9), 4.0) in drawn(ax, "X")


def test_labels_do_not_cover_each_other() -> None:
    scores = np.concatenate([np.zeros(40), [5.0, 5.01, -5.0]])
    mean = np.concatenate([np.linspace(0, 1, 40), [0.5, 0.501, 0.5]])
    close = SimpleNamespace(mean=mean, scores=scores, n_outside=3)
    ax = plots.residuals(close)
    numbers = [text.get_text() for text in ax.texts if text.get_text().isdigit()]
    assert sorted(numbers) == ["41", "42"]


def test_mahalanobis_shows_distance_and_range() -> None:
    ax = plots.mahalanobis(DISTANCE)
    assert (round(DISTANCE.distance2, 9), 0.0) in drawn(ax, "D")
    usual = next(line for line in ax.lines if line.get_linewidth() == 12)
    np.testing.assert_allclose(usual.get_xdata(), [DISTANCE.lower, DISTANCE.upper])


def test_pareto_k_marks_unreliable_runs() -> None:
    k = np.array([0.1, 0.9, np.nan, 0.4])
    ax = plots.pareto_k(SimpleNamespace(pareto_k=k))
    assert drawn(ax, "X") == {(1.0, 0.9)}
    assert drawn(ax, "o") == {(0.0, 0.1), (3.0, 0.4)}


def test_coverage_and_histogram() -> None:
    ax = plots.coverage(COVERAGE)
    assert drawn(ax, "o") | drawn(ax, "X") == pairs_of(COVERAGE.nominal, COVERAGE.empirical)
    outside = (COVERAGE.empirical < COVERAGE.lower) | (COVERAGE.empirical > COVERAGE.upper)
    assert len(drawn(ax, "X")) == outside.sum() > 0
    ax = plots.pit_histogram(UNIFORMITY)
    bars = sorted((bar.get_x(), bar.get_height()) for bar in ax.patches[1:])
    np.testing.assert_allclose(bars, np.column_stack([UNIFORMITY.edges[:-1], UNIFORMITY.counts]))


def test_length_scales() -> None:
    result = SCREENING.length_scales
    ax = plots.length_scales(result)
    boxes = sorted(ax.patches, key=lambda box: -box.get_y())
    np.testing.assert_allclose([box.get_x() for box in boxes], result.quantiles[1])
    np.testing.assert_allclose(
        [box.get_x() + box.get_width() for box in boxes], result.quantiles[3]
    )
    assert [label.get_text() for label in ax.get_yticklabels()] == ["depth", "angle", "mass"]
    assert ax.get_xscale() == "log"


def test_sobol_bars_by_falling_total() -> None:
    result = SCREENING.sobol
    ax = plots.sobol(result)
    order = np.argsort(-result.total)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == [result.names[i] for i in order]
    widths = [[bar.get_width() for bar in bars] for bars in ax.containers]
    np.testing.assert_allclose(widths, [result.first[order], result.total[order]])
    assert f"{result.total[order[0]]:.3f}" in [text.get_text() for text in ax.texts]


def test_main_effects_share_a_scale() -> None:
    result = SCREENING.effects
    axes = plots.main_effects(result)
    assert axes.shape == (3,)
    assert len({ax.get_ylim() for ax in axes}) == 1
    for i, ax in enumerate(axes):
        curve = next(line for line in ax.lines if len(line.get_xdata()) == 41)
        np.testing.assert_allclose(curve.get_ydata(), result.mean[i])
        assert ax.get_xlabel() == result.names[i]
    given = plt.figure().subplots(1, 3)
    assert (plots.main_effects(result, given) == given).all()
    assert len({ax.get_ylim() for ax in given}) == 1
    with pytest.raises(ValueError, match="each of the 3 inputs; got 2"):
        plots.main_effects(result, given[:2])


@pytest.mark.parametrize("p", [1, 2, 4, 7])
def test_main_effects_of_any_number_of_inputs(p: int) -> None:
    effects = SimpleNamespace(
        names=tuple("abcdefg"[:p]), x=np.tile(np.linspace(0, 1, 5), (p, 1)), mean=np.zeros((p, 5)),
        lower=np.zeros((p, 5)), upper=np.zeros((p, 5)), overall=0.0,
    )  # fmt: skip
    axes = plots.main_effects(effects)
    assert len(axes) == p
    axes[0].figure.canvas.draw()


def test_pairs_mark_the_modes() -> None:
    axes = plots.pairs(sample_result(), MODES)
    assert axes.shape == (3, 3)
    assert not axes[0, 1].get_visible()
    assert axes[1, 0].get_visible()
    assert drawn(axes[2, 1], "o") == {(-1.5, -2.5)}
    assert drawn(axes[2, 1], "s") == {(2.5, 1.5)}
    labels = [text.get_text() for text in axes[0, 0].get_legend().get_texts()]
    assert labels == ["A: mass 0.75 $\\pm$ 0.02", "B: mass 0.25 $\\pm$ 0.02"]
    points = next(line for line in axes[1, 0].lines if line.get_marker() == ".")
    assert len(points.get_xdata()) == 1500
    axes[0, 0].figure.canvas.draw()


def test_pairs_follow_the_weights() -> None:
    result = sample_result()
    weights = np.where(result.draws[:, 0] > 0, 1.0, 0.0)
    from dataclasses import replace

    weighted = replace(result, weights=weights / weights.sum())
    axes = plots.pairs(weighted, n_points=200)
    points = next(line for line in axes[1, 0].lines if line.get_marker() == ".")
    assert (np.asarray(points.get_xdata()) > 0).all()
    assert axes[0, 0].get_legend() is None
    one = plots.pairs(sample_result(1))
    assert one.shape == (1, 1)
    with pytest.raises(ValueError, match=r"shape \(3, 3\)"):
        plots.pairs(result, axes=one)


def test_annealing_shows_the_levels() -> None:
    axes = plots.annealing(LEVELS)
    names = ["temperature", "effective_size", None]
    for ax, name in zip(axes, names, strict=True):
        if name:
            assert drawn(ax, "o") == pairs_of(LEVELS["level"], LEVELS[name])
    acceptance = [line.get_ydata() for line in axes[2].lines]
    expected = [LEVELS[f"{n}_acceptance"] for n in ("local", "global", "second")]
    np.testing.assert_allclose(acceptance, expected)
    assert len({line.get_marker() for line in axes[2].lines}) == 3
    with pytest.raises(ValueError, match="three Axes"):
        plots.annealing(LEVELS, axes[:2])
    with pytest.raises(ValueError, match="empty"):
        plots.annealing(LEVELS[:0])


def test_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'paims\[app\]'"):
        plots.coverage(COVERAGE)


def test_importing_needs_no_matplotlib() -> None:
    import subprocess

    code = "import sys; sys.modules['matplotlib'] = None; import paims.plots, paims.diagnostics"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_level_curves_at_the_levels_and_marks() -> None:
    marks = {"A": (0.5, -1.0)}
    ax = plots.level_curves(GRID, GRID, HEIGHT, levels=(1.0, 4.0), marks=marks, numbers=False)
    (lines,) = [c for c in ax.collections if getattr(c, "filled", None) is False]
    assert list(lines.levels) == [1.0, 4.0]
    for level, path in zip(lines.levels, lines.get_paths(), strict=True):
        x, y = path.vertices.T
        # On the curve up to the error of linear interpolation: an eighth of f'' step^2.
        assert np.abs(x**2 + 2.0 * y**2 - level).max() < 0.0201
    assert drawn(ax, "o") == {(0.5, -1.0)}
    assert "A" in [text.get_text() for text in ax.texts]


def test_level_curves_first_index_is_the_horizontal_axis() -> None:
    height = np.abs(GRID[:, None] - 2.0) + 0.0 * GRID[None]
    ax = plots.level_curves(GRID, GRID, height, levels=(0.5,), diagonal=False)
    (lines,) = [c for c in ax.collections if getattr(c, "filled", None) is False]
    x = np.unique(np.round(np.vstack([p.vertices for p in lines.get_paths()])[:, 0], 6))
    assert x == pytest.approx([1.5, 2.5])


def test_level_clouds_show_every_level() -> None:
    axes = plots.level_clouds(GRID, GRID, HEIGHT, CLOUDS, labels=("a", "b"))
    for ax, cloud in zip(axes, CLOUDS, strict=True):
        assert drawn(ax, ".") == pairs_of(*cloud.points.T)
    titles = [ax.get_title() for ax in axes]
    assert titles[0].startswith("level 0: reference")
    assert titles[1] == "level 1: $\\tau$ = 12.5\naccepted: first 0.70, second 0.50"
    with pytest.raises(ValueError, match="one Axes for each of 3 levels; got 2"):
        plots.level_clouds(GRID, GRID, HEIGHT, CLOUDS, axes[:2])


def test_prediction_surface_shares_scales() -> None:
    fields = {"mean": HEIGHT, "simulator": 2.0 * HEIGHT, "standard deviation": 0.1 * HEIGHT}
    axes = plots.prediction_surface(GRID, GRID, fields, [[0.0, 1.0]], labels=("a", "b"))
    limits = [next(c for c in ax.collections if hasattr(c, "levels")).get_clim() for ax in axes]
    assert limits[0] == limits[1] != limits[2]
    assert all(drawn(ax, "o") == {(0.0, 1.0)} for ax in axes)
    with pytest.raises(ValueError, match="one Axes for each of 3 fields"):
        plots.prediction_surface(GRID, GRID, fields, [[0.0, 1.0]], axes[:2])


def test_box_plots_have_the_quantiles() -> None:
    ax = plots.box_plots(QUANTILES, ["a", "b", "c"])
    bottoms = [patch.get_y() for patch in ax.patches]
    tops = [patch.get_y() + patch.get_height() for patch in ax.patches]
    assert bottoms == pytest.approx(QUANTILES[1])
    assert tops == pytest.approx(QUANTILES[3])
    with pytest.raises(ValueError, match=r"shape \(5, 2\) for 2 names; got \(5, 3\)"):
        plots.box_plots(QUANTILES, ["a", "b"])


def test_marginals_are_weighted() -> None:
    draws = np.repeat([[0.0, 0.0], [1.0, 5.0]], 50, axis=0)
    weights = np.repeat([0.9, 0.1], 50) / 50
    axes = plots.marginals(draws, weights, ["a", "b"], n_bins=10)
    for ax in axes:
        heights = ax.patches[0].get_path().vertices[:, 1]
        assert heights.max() == pytest.approx(0.9)
    with pytest.raises(ValueError, match=r"3 names need draws with 3 columns"):
        plots.marginals(draws, weights, ["a", "b", "c"])


def test_spread_has_all_values_and_marks() -> None:
    ax = plots.spread({"one": SCORES, "two": SCORES + 1}, marks={"paper": {"two": 3.0}})
    values = {x for x, _ in drawn(ax, "o")}
    assert values == {round(float(v), 9) for v in np.concatenate([SCORES, SCORES + 1])}
    assert drawn(ax, "D") == {(3.0, 0.0)}
    assert [text.get_text() for text in ax.get_yticklabels()] == ["one", "two"]


def test_residuals_without_numbers() -> None:
    ax = plots.residuals(RESIDUALS, numbers=False)
    assert "48" not in [text.get_text() for text in ax.texts]


def test_places_that_are_not_needed_are_empty() -> None:
    axes = plots.marginals(RNG.normal(size=(50, 4)), np.ones(50), ["a", "b", "c", "d"])
    figure = axes[0].figure
    assert len(axes) == 4
    assert [ax.get_visible() for ax in figure.axes] == [True] * 4 + [False] * 2


def test_joint_errors_are_marked_outside_their_own_bound() -> None:
    result = diagnostics.JointErrors(
        np.array([0.1, -1.7, 1.2]), np.arange(3), "cholesky", 3, 1.5, "simulation"
    )
    ax = plots.joint_errors(result)
    crosses = next(line for line in ax.lines if line.get_marker() == "X")
    np.testing.assert_array_equal(crosses.get_ydata(), [-1.7])


def test_corner_shows_weighted_densities_and_modes() -> None:
    result = with_derived(sample_result())
    figure = plots.corner(result)
    axes = np.array(figure.axes).reshape(3, 3)
    assert not axes[0, 1].get_visible()
    assert [ax.get_xlabel() for ax in axes[2]] == list(result.names)
    modes = result.modes()
    for mode, marker in zip(modes, "os", strict=False):
        assert drawn(axes[2, 1], marker) == pairs_of(mode.location[1:2], mode.location[2:3])
    cells = axes[2, 0].collections[0].get_array()
    assert float(np.sum(cells)) == pytest.approx(1.0, abs=0.03)
    heights, edges = outline(axes[0, 0])
    middle = (edges[1:] + edges[:-1]) / 2
    assert heights @ middle / heights.sum() == pytest.approx(result.mean[0], abs=0.05)
    figure.canvas.draw()


def test_corner_follows_the_weights() -> None:
    from dataclasses import replace

    result = sample_result()
    weights = np.where(result.draws[:, 0] > 0, 1.0, 0.0)
    weighted = replace(result, weights=weights / weights.sum())
    left, _ = plots.corner(weighted, weighted.names[:1]).axes[0].get_xlim()
    assert left > -0.5


def test_corner_of_derived_quantities() -> None:
    result = with_derived(sample_result())
    figure = plots.corner(result, [result.names[0], "total"])
    axes = np.array(figure.axes).reshape(2, 2)
    assert axes[1, 1].get_xlabel() == "total"
    assert drawn(axes[1, 0], "o") == set()  # the modes' totals are not known
    with pytest.raises(ValueError, match="names has 'nothing', which the result does not"):
        plots.corner(result, ["nothing"])


def with_derived(result: Any) -> Any:
    return result.with_derived(lambda x: {"total": x.sum(axis=1)})


def outline(ax: Any) -> tuple[Any, Any]:
    """Heights and edges of a filled histogram."""
    x, y = ax.patches[0].get_xy().T
    tops = np.flatnonzero((np.diff(x) > 0) & (np.diff(y) == 0))  # the rest goes up, down or back
    return y[tops], np.append(x[tops], x[tops[-1] + 1])


@pytest.mark.parametrize(("share", "cells"), [(0.5, 1), (0.9, 3)])
def test_regions_hold_their_shares(share: float, cells: int) -> None:
    from paims.plots._corner import region_levels

    mass = np.array([[0.5, 0.3], [0.15, 0.05]])
    levels = region_levels(mass, [share])
    expected = np.sort(mass.ravel())[::-1][cells - 1]
    assert list(levels) == ([] if cells == 1 else [expected])
