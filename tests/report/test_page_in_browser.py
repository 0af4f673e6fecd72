"""The report in a real browser: numbers, quiet console, no network, sliders."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import paims
from paims import gp, simulators
from paims.report import Provenance, render_report


class RationalQuadratic(gp.Kernel):
    """A user's kernel."""

    def factor(self, distance, phi):
        return (1.0 + distance**2 / (4.0 * phi**2)) ** -2.0

    def factor_derivative(self, distance, phi):
        s = distance**2 / (4.0 * phi**2)
        return 4.0 * s * (1.0 + s) ** -3.0


class Spherical(gp.Kernel):
    """A user's kernel with a kink away from 0."""

    def factor(self, distance, phi):
        s = np.minimum(distance / phi, 1.0)
        return 1.0 - 1.5 * s + 0.5 * s**3

    def factor_derivative(self, distance, phi):
        s = np.minimum(distance / phi, 1.0)
        return 1.5 * s - 1.5 * s**3


class Matern92(gp.Matern):
    """A user's kernel that is told by a number."""

    order = 4


CASES: dict[str, dict[str, Any]] = {
    "squared exponential, linear": {},
    "matern52, quadratic, fixed nugget": {
        "kernel": "matern52", "mean": "quadratic", "nugget": 1e-6,
    },
    "matern32, constant, gaussian": {
        "kernel": "matern32", "mean": "constant", "predictive": "gaussian",
    },
    "matern72, linear": {"kernel": "matern72"},
    "power exponential, zero": {"kernel": "power_exponential", "mean": "zero"},
    "a user's smooth kernel": {"kernel": RationalQuadratic(), "nugget": 1e-8},
    "a user's rough kernel": {"kernel": Spherical()},
    "a user's number": {"kernel": Matern92()},
}  # fmt: skip
DEFAULT = "squared exponential, linear"


@cache
def _emulator(case: str) -> paims.Emulator:
    simulator = simulators.branin
    X = simulator.design(18, 4)
    # Other units than [0, 1], and a name that HTML and JSON would trip over.
    frame = pd.DataFrame({'a<b> & "c"': 1e3 + 250.0 * X[:, 0], "x2": 1e-4 * X[:, 1]})
    return paims.Emulator(random_state=0, n_samples=400, **CASES[case]).fit(frame, simulator(X))


@cache
def _html(case: str) -> str:
    return render_report(_emulator(case), Provenance(output="y"))


@pytest.mark.parametrize("case", list(CASES))
def test_numbers_in_the_page_equal_the_librarys(case: str, page: Any, tmp_path: Path) -> None:
    emulator = _emulator(case)
    path = tmp_path / "report.html"
    path.write_text(_html(case), encoding="utf-8")
    page.open(path)
    small = emulator.compress(20)
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.uniform(1e3, 1250.0, 25), rng.uniform(0.0, 1e-4, 25)])
    X = np.vstack([X, emulator.inputs_.undo(emulator.posterior_.X[:5])])
    levels = [0.001, 0.025, 0.25, 0.5, 0.75, 0.975, 0.9999]
    mixture = small.predict_distribution(pd.DataFrame(X, columns=emulator.feature_names_in_))
    answers = page.evaluate(f"{X.tolist()}.map(x => paims.predict(x, {levels}))")
    scale = mixture.std.min()
    for name in ("mean", "std"):
        here = np.array([answer[name] for answer in answers])
        np.testing.assert_allclose(here, getattr(mixture, name), rtol=0, atol=1e-6 * scale)
    here = np.array([answer["quantiles"] for answer in answers]).T
    np.testing.assert_allclose(here, mixture.quantile(levels), rtol=0, atol=1e-6 * scale)
    # Curves take another way through the same formulas.
    ends = X[:, 1].tolist()
    row = page.evaluate(f"paims.along({X[0].tolist()}, 1, {ends}, {levels})")
    slanted = np.column_stack([np.full(len(X), X[0, 0]), X[:, 1]])
    along = small.predict_distribution(pd.DataFrame(slanted, columns=emulator.feature_names_in_))
    here = np.array([answer["quantiles"] for answer in row]).T
    np.testing.assert_allclose(here, along.quantile(levels), rtol=0, atol=1e-6 * scale)
    assert page.troubles() == []


def test_quiet_page_without_network(page: Any, tmp_path: Path) -> None:
    simulator = simulators.branin
    held_out = simulator.design(20, 9)
    frame = held_out * [250.0, 1e-4] + [1e3, 0.0]
    emulator = _emulator(DEFAULT)
    html = render_report(emulator, Provenance(output="y"), held_out=(frame, simulator(held_out)))
    path = tmp_path / "report.html"
    path.write_text(html, encoding="utf-8")
    assert path.stat().st_size < 5e6
    page.open(path)
    page.frame()
    assert page.troubles() == []
    assert [a for a in page.requests() if not a.startswith(("file:", "data:"))] == []
    assert len([a for a in page.requests() if a.startswith("file:")]) == 1
    boxes = page.evaluate(
        "[...document.querySelectorAll('figure svg')].map(s => { const r = "
        "s.getBoundingClientRect(); return [r.width, r.height, s.querySelectorAll('path').length,"
        " (s.getAttribute('aria-label') || '').length]; })"
    )
    assert len(boxes) >= 11
    assert all(w > 100 and h > 40 and paths > 2 and alt > 20 for w, h, paths, alt in boxes)


def test_sliders_change_the_curves(page: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    emulator = _emulator(DEFAULT)
    path.write_text(_html(DEFAULT), encoding="utf-8")
    page.open(path)
    curves = "[...document.querySelectorAll('#explore .mean')].map(p => p.getAttribute('d'))"
    before, mean = page.evaluate(curves), page.evaluate("+readout.dataset.mean")
    # As a keyboard does: focus, then arrow keys.
    page.evaluate("document.getElementById('slider-0').focus()")
    for _ in range(30):
        for kind in ("keyDown", "keyUp"):
            page.send("Input.dispatchKeyEvent", type=kind, key="ArrowRight", code="ArrowRight",
                      windowsVirtualKeyCode=39)  # fmt: skip
    page.frame()
    after = page.evaluate(curves)
    # The curve along the moved input runs through the same points; the other one has moved.
    assert len(before) == 2
    assert after[1] != before[1]
    low, high = emulator.inputs_.undo(np.array([[0.0, 0.0], [1.0, 1.0]])).tolist()
    value = low[0] + (high[0] - low[0]) * 130 / 200
    middle = 0.5 * (low[1] + high[1])
    expected = page.evaluate(f"paims.predict([{value!r}, {middle!r}], []).mean")
    assert page.evaluate("+readout.dataset.mean") == pytest.approx(expected, rel=1e-12)
    assert expected != pytest.approx(mean, rel=1e-3)
    assert page.troubles() == []


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_themes_and_widths(scheme: str, width: int, page: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(_html(DEFAULT), encoding="utf-8")
    page.send("Emulation.setDeviceMetricsOverride", width=width, height=800,
              deviceScaleFactor=1, mobile=False)  # fmt: skip
    page.send("Emulation.setEmulatedMedia",
              features=[{"name": "prefers-color-scheme", "value": scheme}])  # fmt: skip
    page.open(path)
    page.frame()
    # Nothing sticks out to the side.
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    # Of a figure that Matplotlib drew and of one that the page drew.
    inks = page.evaluate(
        "['#data figure svg text', '#explore figure svg text.name'].map(s => "
        "getComputedStyle(document.querySelector(s)).fill)"
    )
    sign = 1 if scheme == "light" else -1
    for ink in inks:
        paper_light, ink_light = (sum(map(int, c[4:-1].split(","))) / 3 for c in (paper, ink))
        assert sign * (paper_light - ink_light) > 120


@pytest.mark.parametrize("way", ["components", "separate"])
def test_sliders_move_several_outputs(way: str, page: Any, tmp_path: Path) -> None:
    X = np.random.default_rng(0).random((16, 2))
    points = np.linspace(0.0, 1.0, 20 if way == "components" else 2)
    Y = np.exp(-((points - X[:, :1]) ** 2)) * (1.0 + X[:, 1:])
    emulator = paims.Emulator(
        random_state=0,
        n_samples=200,
        prior="jointly_robust",
        kernel="squared_exponential",
        outputs=way,
    ).fit(X, Y)
    path = tmp_path / "report.html"
    path.write_text(render_report(emulator), encoding="utf-8")
    page.open(path)
    place = [0.3, 0.6]
    mean, std = emulator.predict([place], return_std=True)
    found = page.evaluate(f"paims.predict({place})")
    # The page has fewer components; how many depends on the number of outputs.
    np.testing.assert_allclose([row["mean"] for row in found], mean[0], atol=0.2 * std.max())
    half = np.array([row["high"] - row["low"] for row in found]) / 2.0
    np.testing.assert_allclose(half, 1.96 * std[0], rtol=0.25, atol=0.1 * std.max())
    shown = "document.getElementById('explore').innerHTML"
    before = page.evaluate(shown)
    page.evaluate(f"paims.set({place})")
    page.frame()
    assert page.evaluate(shown) != before
    assert page.troubles() == []
