"""The report as a document: complete, self-contained, accessible; and what it says in words."""

from __future__ import annotations

import re
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paims
from paims import simulators
from paims.report import (
    Provenance,
    answers,
    read_provenance,
    render_report,
    save_with_provenance,
    study,
)
from paims.report._mixture import n_components, page_mixture

SECTIONS = ("verdict", "explore-section", "data", "modes", "checks", "inputs", "predictions",
            "how", "cite")  # fmt: skip


@cache
def _emulator() -> paims.Emulator:
    simulator = simulators.branin
    X = simulator.design(18, 4)
    emulator = paims.Emulator(
        "squared_exponential", nugget_prior="uniform", random_state=0, n_samples=400
    )
    return emulator.fit(X, simulator(X))


def _held_out(shift: float = 0.0) -> tuple[Any, Any]:
    """Outputs that the emulator itself would draw, moved by some standard deviations."""
    X = simulators.branin.design(30, 8)
    mixture = _emulator().predict_distribution(X)
    return X, mixture.sample(1, 4)[0] + shift * mixture.std


@cache
def _html() -> str:
    provenance = Provenance(output="y<1>", source="runs.csv", seconds=2.5)
    return render_report(_emulator(), provenance, held_out=_held_out())


class _Outline(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "br", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@cache
def _outline() -> list[tuple[str, dict[str, str | None]]]:
    parser = _Outline()
    parser.feed(_html())
    assert parser.open == []
    return parser.tags


def test_all_sections_and_no_duplicate_ids() -> None:
    ids = [attributes["id"] for _, attributes in _outline() if attributes.get("id")]
    assert set(SECTIONS) <= set(ids)
    assert len(ids) == len(set(ids))


def test_self_contained() -> None:
    html = _html()
    assert len(html.encode()) < 5e6
    for tag, attributes in _outline():
        for name in ("src", "href", "xlink:href"):
            value = attributes.get(name) or ""
            assert value.startswith(("#", "data:")) or value == "", (tag, value)
    assert "@import" not in html
    assert re.findall(r"url\((?!#)[^)]*\)", html) == []


def test_figures_have_texts_and_tables_have_headers() -> None:
    svgs = [attributes for tag, attributes in _outline() if tag == "svg"]
    assert len(svgs) == 11
    assert all(a["role"] == "img" and len(a["aria-label"] or "") > 20 for a in svgs)
    html = _html()
    for table in re.findall(r"<table>.*?</table>", html, flags=re.DOTALL):
        assert "<caption>" in table
        rows = re.findall(r"<tr>.*?</tr>", table, flags=re.DOTALL)
        assert rows[0].count('<th scope="col"') >= 2
        assert all('<th scope="row">' in row for row in rows[1:])
    assert '<html lang="en">' in html
    levels = [int(tag[1]) for tag, _ in _outline() if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))


def test_colours_follow_the_theme() -> None:
    figures = "".join(re.findall(r"<svg.*?</svg>", _html(), flags=re.DOTALL))
    assert "var(--blue)" in figures
    assert re.findall(r"(?:fill|stroke): ?#[0-9a-fA-F]{6}", figures) == []


def test_names_are_escaped_and_numbers_shown() -> None:
    html = _html()
    assert "y<1>" not in html
    assert "Emulator of y&lt;1&gt;" in html
    emulator = _emulator()
    for mode in emulator.modes_:
        assert f"{mode.mass:.3f} ± {mode.mass_error:.3f}" in html
    assert f"{emulator.result_.n_evaluations:,}" in html
    assert "2.5 s" in html
    assert "10.1016/j.csda.2016.06.019" in html
    assert f"numpy {np.__version__}" in html


def test_same_emulator_same_page() -> None:
    provenance = Provenance(output="y<1>", source="runs.csv", seconds=2.5)
    assert render_report(_emulator(), provenance, held_out=_held_out()) == _html()


def test_verdicts_follow_the_numbers() -> None:
    X, drawn = _held_out()
    rough = answers(study(_emulator(), (X, drawn)))[0]
    assert rough.short == "Honest but rough: use its intervals"
    good = {a.key: a for a in answers(study(_emulator(), (X, simulators.branin(X))))}
    assert good["trust"].tone == "good"
    bad = {a.key: a for a in answers(study(_emulator(), _held_out(4.0)))}
    assert bad["trust"].tone in ("care", "bad")
    assert "outside +-1.96" in bad["trust"].text
    modes = _emulator().modes_
    assert good["modes"].short.startswith("Yes: 2" if len(modes) == 2 else "No")
    assert len(modes) == 1 or f"{modes[1].mass:.0%}" in good["modes"].text
    assert "x1" in good["inputs"].short
    numbers = study(_emulator())
    point, std = numbers.next_run.point, numbers.next_run.std
    found = _emulator().predict(point[None], return_std=True)[1][0]
    assert std == pytest.approx(found, rel=1e-9)
    corners = np.random.default_rng(0).random((200, 2))
    scaled = _emulator().inputs_.undo(corners)
    others = _emulator().predict(scaled, return_std=True)[1]
    assert np.mean(others <= std) > 0.95


def test_too_cautious_is_not_untrustworthy() -> None:
    X, _ = _held_out()
    numbers = study(_emulator(), (X, _emulator().predict(X)))
    assert numbers.validation is not None
    assert not numbers.validation.passed
    trust = answers(numbers)[0]
    assert (trust.short, trust.tone) == ("Yes: if anything it is too cautious", "good")


def test_constant_input_and_one_input() -> None:
    x = np.linspace(0.0, 3.0, 10)
    with pytest.warns(UserWarning, match="one value only"):
        emulator = paims.Emulator(random_state=0, n_samples=200, nugget=1e-6).fit(
            np.column_stack([np.full(10, 7.0), x]), np.sin(x)
        )
    html = render_report(emulator)
    assert "input, left out: one value only" in html
    assert "log10 nugget" not in html


def test_few_runs_cannot_be_left_out() -> None:
    x = np.linspace(0.0, 1.0, 5)[:, None]
    emulator = paims.Emulator(random_state=0, n_samples=200).fit(x, np.exp(x[:, 0]))
    numbers = study(emulator)
    assert numbers.loo is None
    assert answers(numbers)[0].short == "There is nothing to judge it by"
    assert "too few runs to leave one out" in render_report(emulator, numbers=numbers)


def test_page_budget() -> None:
    assert n_components(18) == 20
    assert 1 <= n_components(300) < 20
    assert n_components(2000) == 0


def test_users_trend_has_no_live_part() -> None:
    x = np.linspace(0.0, 3.0, 12)[:, None]
    emulator = paims.Emulator(mean=lambda X: X**2, random_state=0, n_samples=200)
    emulator.fit(x, np.sin(x[:, 0]))
    assert page_mixture(emulator) is None
    html = render_report(emulator)
    assert "<script" not in html
    assert html.count("The trend is a function of yours, so shares of the variance") == 2
    assert "The trend is a function of yours, so it is not computed in the page" in html


def test_a_radial_kernel_has_neither_sliders_nor_indices(tmp_path: Path) -> None:
    """Both are sums over products of one factor for each input; the page says so."""
    simulator = simulators.branin
    X = simulator.design(18, 4)
    emulator = paims.Emulator("radial_matern52", random_state=0, n_samples=200)
    emulator.fit(X, simulator(X))
    assert page_mixture(emulator) is None
    numbers = study(emulator)
    assert numbers.screening is None
    assert numbers.effects is None
    page = render_report(emulator, numbers=numbers)
    assert "<script" not in page
    reason = "The kernel is not a product of one factor per input, so"
    assert f"({reason} it is not computed in the page" in page
    # in the verdict, and where the indices would be
    assert page.count(f"{reason} shares of the variance are not computed.") == 2
    assert "The trend is a function" not in page
    assert "Slices through the middle" in page
    # the page of the emulator that a file holds is the same
    emulator.save(tmp_path / "radial.h5")
    assert render_report(paims.load_emulator(tmp_path / "radial.h5")) == render_report(emulator)


def test_one_radial_kernel_of_several_takes_the_sliders() -> None:
    simulator = simulators.branin
    X = simulator.design(18, 4)
    emulator = paims.Emulator(["matern52", "radial_matern52"], random_state=0, n_samples=200)
    emulator.fit(X, simulator(X))
    assert len(emulator.kernel_weights_) == 2
    page = render_report(emulator)
    assert "<script" not in page
    assert "not a product of one factor per input, so it is not computed in the page" in page


def test_provenance_survives_and_files_stay_readable(tmp_path: Path) -> None:
    path = tmp_path / "e.h5"
    provenance = Provenance(output="flow", source="a.csv", seconds=3.0, warnings=("look",))
    save_with_provenance(_emulator(), path, provenance)
    assert read_provenance(path) == provenance
    X = simulators.branin.design(5, 0)
    np.testing.assert_array_equal(paims.load_emulator(path).predict(X), _emulator().predict(X))
    _emulator().save(path)
    assert read_provenance(path) == Provenance(versions={"paims": paims.__version__})
    assert [p.name for p in tmp_path.iterdir()] == ["e.h5"]


def test_kernels_are_compared_where_there_are_several() -> None:
    simulator = simulators.get("branin")
    X = simulator.design(15, random_state=3)
    averaged = paims.Emulator(random_state=0, n_samples=200).fit(X, simulator(X))
    page = render_report(averaged)
    assert "the emulator is their mixture" in page
    assert len(averaged.kernel_weights_) > 1
    first, second = list(averaged.kernel_weights_)[:2]
    for name, weight in averaged.kernel_weights_.items():
        assert f'<th scope="row">{name.replace("_", " ")}</th><td>{100 * weight:.1f} %' in page
    numbers = study(averaged).kernels
    assert numbers is not None
    assert f"the means under {first} and {second}".replace("_", " ") in numbers.verdict
    assert [row.name for row in numbers.rows][: len(averaged.kernel_weights_)] == list(
        averaged.kernel_weights_
    )
    # What is said of the means is so: the point is where they differ most.
    alone = study(paims.Emulator("matern52", random_state=0, n_samples=200).fit(X, simulator(X)))
    assert alone.kernels is None
    assert "their mixture" not in render_report(alone.emulator, numbers=alone)
