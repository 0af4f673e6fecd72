"""What a fit says of how long it will take."""

from __future__ import annotations

import numpy as np
import pytest

import paims
from paims.emulator import LongFitWarning
from paims.emulator import _checks as duration
from paims.gp import Posterior

Runs = tuple[np.ndarray, np.ndarray]


@pytest.fixture
def costly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluations that seem to take 20 ms each."""
    monkeypatch.setattr(duration, "seconds_per_evaluation", lambda posterior, scheme: 0.02)


@pytest.mark.usefixtures("costly")
def test_long_fits_are_announced(runs: Runs) -> None:
    posterior = Posterior(*runs)
    with pytest.warns(LongFitWarning, match=r"about 8 minute.*evaluations of 20 ms") as seen:
        seconds = duration.announce(posterior, [None], "default", progress=False)
    assert seconds == pytest.approx(4.0 * 2000 * 3 * 0.02, rel=0.01)
    assert "prior='jointly_robust'" in str(seen[0].message)
    assert "checkpoint='fit.h5'" in str(seen[0].message)
    other = Posterior(*runs, prior="jointly_robust")
    with pytest.warns(LongFitWarning) as seen:
        duration.announce(other, [20000], "default", progress=False)
    assert "about 80 minute" in str(seen[0].message)
    assert "jointly_robust" not in str(seen[0].message)


@pytest.mark.usefixtures("costly")
def test_short_fits_are_not(runs: Runs) -> None:
    assert duration.announce(Posterior(*runs), [200], "default", progress=False) < 60.0


@pytest.mark.usefixtures("costly")
def test_with_progress_it_is_a_line(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    duration.announce(Posterior(*runs), [None], "default", progress=True)
    assert capsys.readouterr().err.startswith("The fit will take about 8 minute")


def test_a_fit_asks(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duration, "seconds_per_evaluation", lambda posterior, scheme: 1.0)
    with pytest.warns(LongFitWarning):
        paims.Emulator(n_samples=200, random_state=0).fit(*runs)


def test_measurement_leaves_no_trace(runs: Runs) -> None:
    posterior = Posterior(*runs)
    assert duration.seconds_per_evaluation(posterior) > 0.0
    assert posterior.n_evaluations == 0


def test_compilation_is_not_measured(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call takes 20 s on a clock that a call moves on, the others 0.1 s for a batch."""
    now, calls = [0.0], []

    def evaluate(u: np.ndarray) -> np.ndarray:
        now[0] += 0.1 if calls else 20.0
        calls.append(len(u))
        return np.zeros(len(u))

    monkeypatch.setattr(duration, "density", lambda posterior: evaluate)
    monkeypatch.setattr(duration, "perf_counter", lambda: now[0])
    each = duration.seconds_per_evaluation(Posterior(*runs, n_jobs=1))
    assert each == pytest.approx(0.1)


def test_expected_evaluations_are_about_right(emulator: paims.Emulator) -> None:
    expected = duration.expected_evaluations(500, 3)
    assert 0.3 < emulator.result_.n_evaluations / expected < 3.0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(61.0, "1 minute(s)"), (3600.0, "60 minute(s)"), (9000.0, "2 hours"), (3e5, "3 days")],
)
def test_words(seconds: float, text: str) -> None:
    assert duration._worded(seconds) == text
