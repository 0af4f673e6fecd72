"""Other samplers on targets that hurt: what needs none of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.peers import foreign
from benchmarks.peers.cells import Cell, Store
from benchmarks.peers.problems import Draws, Problem

ROOT = Path(__file__).parents[2]


class Exact:
    """A sampler that draws from the two halves of a spike and slab itself, and is off by 1."""

    @staticmethod
    def run(problem: Problem, setting: str, seed: int) -> Draws:
        del setting
        rng = np.random.default_rng(seed)
        sd = np.repeat([0.1, 1.0], 2000)
        draws = rng.standard_normal((4000, problem.d)) * sd[:, None]
        problem.log_likelihood(draws[:10])
        return Draws(draws, np.full(4000, 1 / 4000), problem.log_evidence + 1.0)


def test_a_run_is_compared_with_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "adapter", lambda name: Exact)
    found = foreign.measure(Cell("foreign", "nautilus", "spike_and_slab_5d", "n_live = 2000", 0))
    assert found["log_evidence_error"] == pytest.approx(1.0)
    assert found["mass_error"] < 0.02  # of 4000 draws, and few are nearer to the other
    assert found["n_evaluations"] == 10
    ours = foreign.measure(Cell("foreign", "paims", "spike_and_slab_5d", "defaults", 0))
    assert abs(ours["log_evidence_error"]) < 0.05
    assert ours["warned"] is False


def test_rows_count_what_gave_no_result() -> None:
    cell = Cell("foreign", "dynesty", "funnel_10d", "nlive = 500", 0)
    rows = [
        {**cell.__dict__, "status": "timeout"},
        {**cell.__dict__, "status": "ok", "seed": 1, "n_evaluations": 1000, "cpu_seconds": 2.0,
         "log_evidence_error": -0.5},
    ]  # fmt: skip
    last = foreign.report(rows).splitlines()[-1]
    assert last == "| funnel_10d | dynesty | nlive = 500 | 2 | 1 | 1,000 | 2.0 | -0.50 | - | - |"
    assert len(foreign.cells(1)) == 2 * 4 + 4 * 3


def test_the_page_shows_the_results() -> None:
    found = foreign.report(list(Store(foreign.RESULTS)))
    assert foreign.PAGE.read_text(encoding="utf-8") == found + "\n"
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert "{include} ../benchmarks/foreign.md" in page
