"""The benchmark of foreign targets: the truths of its cases, and what its page shows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import hard

ROOT = Path(__file__).parents[2]


def test_the_page_shows_the_results() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    assert hard.report() in page


@pytest.mark.parametrize(
    "case",
    [hard.funnel(2), hard.even_rosenbrock(2), hard.corner(2), hard.simplex_ridge(2),
     hard.twisted(2), hard.rastrigin(2)],
    ids=lambda case: case.name,
)  # fmt: skip
def test_truths_in_two_dimensions(case: hard.Case) -> None:
    lower, upper = case.reference.lower, case.reference.upper
    n = 4001
    x, y = (lower[i] + (upper[i] - lower[i]) * (np.arange(n) + 0.5) / n for i in range(2))
    total = 0.0
    for value in x:
        points = np.column_stack([np.full(n, value), y])
        total += float(np.sum(np.exp(case.log_density(points))))
    total *= np.prod(upper - lower) / n**2
    assert np.log(total) == pytest.approx(case.log_evidence, abs=0.01)


def test_right_and_silent() -> None:
    row = {"error": 0.01, "mass_error": 0.01, "reported": 0.001, "warnings": 0}
    assert hard.is_right(row)
    assert not hard.is_silent(row)
    lost = {**row, "error": -0.2, "mass_error": 0.15}
    assert hard.is_silent(lost)
    assert not hard.is_silent({**lost, "warnings": 1})
    assert not hard.is_silent({**lost, "reported": 0.1})


def test_results_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "hard.json"
    monkeypatch.setattr(hard, "named", lambda: [hard.corner(2)])
    hard.run(("named",), 1, path)
    before = path.read_text()
    monkeypatch.setattr(hard, "measured", lambda *_: pytest.fail("was run again"))
    hard.run(("named",), 1, path)
    assert path.read_text() == before
    assert "corner_2d" in hard.report(path)
