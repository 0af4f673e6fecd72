"""What a fit says of how long it will take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paims
from paims import _memory
from paims.emulator import LongFitWarning, VeryLongFitWarning
from paims.emulator import _forecast as duration
from paims.gp import Posterior
from paims.inference import affordable_prior

Runs = tuple[np.ndarray, np.ndarray]


@pytest.fixture
def costly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluations that seem to take 20 ms each."""
    monkeypatch.setattr(duration, "seconds_per_evaluation", lambda posterior, scheme: 0.02)


@pytest.mark.usefixtures("costly")
def test_long_fits_are_announced(runs: Runs) -> None:
    posterior = Posterior(*runs)
    with pytest.warns(LongFitWarning, match=r"about 4 minute.*evaluations of 20 ms") as seen:
        seconds = duration.announce(posterior, [None], "default", progress=False)
    assert seconds == pytest.approx(5.0 * 800 * 3 * 0.02, rel=0.01)
    assert "prior='jointly_robust'" in str(seen[0].message)
    assert "checkpoint='fit.h5'" in str(seen[0].message)
    other = Posterior(*runs, prior="jointly_robust")
    with pytest.warns(LongFitWarning) as seen:
        duration.announce(other, [20000], "default", progress=False)
    assert "about 100 minute" in str(seen[0].message)
    assert "jointly_robust" not in str(seen[0].message)


@pytest.mark.usefixtures("costly")
def test_short_fits_are_not(runs: Runs) -> None:
    assert duration.announce(Posterior(*runs), [150], "default", progress=False) < 60.0


@pytest.mark.usefixtures("costly")
def test_with_progress_it_is_a_line(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    duration.announce(Posterior(*runs), [None], "default", progress=True)
    assert capsys.readouterr().err.startswith("The fit will take about 4 minute")


def test_a_fit_asks(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duration, "seconds_per_evaluation", lambda posterior, scheme: 1.0)
    with pytest.warns(LongFitWarning):
        paims.Emulator(n_samples=200, random_state=0).fit(*runs)


def test_hours_are_a_warning_with_progress_too(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(duration, "seconds_per_evaluation", lambda posterior, scheme: 1.0)
    with pytest.warns(
        VeryLongFitWarning, match=r"about 3 hours .*Less than ten minutes: "
    ) as seen:
        duration.announce(Posterior(*runs), [None], "default", progress=True)
    assert capsys.readouterr().err == ""
    # 5 * 3 evaluations for each point; the third power of the runs brings the rest.
    assert "n_samples=500, an even choice of" in str(seen[0].message)


def test_what_is_advised_takes_less_than_ten_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """An evaluation of 1 ms at a hundred runs, five times that with the reference prior."""
    X = np.random.default_rng(0).random((900, 2))

    def each(posterior: Posterior, scheme: object) -> float:
        size = posterior.n_runs / 100
        return 5e-3 * size**3 if posterior.prior.uses_information else 1e-3 * size**2.5

    monkeypatch.setattr(duration, "seconds_per_evaluation", each)
    posterior = Posterior(X, X.sum(axis=1) ** 2)
    with pytest.warns(VeryLongFitWarning) as seen:
        duration.announce(posterior, [None], "default", progress=False)
    advice = str(seen[0].message).split("Less than ten minutes: ")[1]
    words = ("prior='jointly_robust', n_samples=500, an even choice of ", " of the runs.")
    assert advice.startswith(words[0])
    n_runs = int(advice.removeprefix(words[0]).split(words[1])[0])
    seconds = 5 * 500 * 3 * (1e-3 * (n_runs / 100) ** 2.5 + duration.OVERHEAD)
    assert 300.0 < seconds < 600.0


def test_many_runs_are_measured_with_some_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def density(posterior: Posterior) -> Any:
        sizes.append(posterior.n_runs)
        return lambda u: np.zeros(len(u))

    now = iter(np.arange(0.0, 100.0, 0.1))
    monkeypatch.setattr(duration, "density", density)
    monkeypatch.setattr(duration, "perf_counter", lambda: next(now))
    X = np.random.default_rng(0).random((2000, 3))
    each = duration.seconds_per_evaluation(Posterior(X, X[:, 0] ** 2, n_jobs=1))
    assert sizes == [400]
    assert each == pytest.approx(0.1 * 5**3)


@pytest.mark.parametrize("prior", ["reference", "jointly_robust"])
def test_a_fit_without_room_is_refused_at_once(
    prior: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_memory, "available", lambda: 1e9)
    monkeypatch.setattr(duration, "available", lambda: 1e9)
    X = np.random.default_rng(0).random((20_000, 3))
    emulator = paims.Emulator(prior=prior, n_jobs=2)
    with pytest.raises(MemoryError, match=r"A fit of 20,000 runs takes about \d+ GB") as error:
        emulator.fit(X, np.sin(X[:, 0]))
    n_runs = int(str(error.value).split("About ")[1].split(" runs have room")[0])
    needed = duration.bytes_of_evaluation(Posterior(X[:9], X[:9, 0] ** 2, prior=prior), n_runs)
    assert 0.8e9 < needed * 2 / duration.n_threads(None) <= 1e9
    assert ("prior='jointly_robust'" in str(error.value)) == (prior == "reference")


def test_measurement_leaves_no_trace(runs: Runs) -> None:
    posterior = Posterior(*runs)
    assert duration.seconds_per_evaluation(posterior) > 0.0
    assert posterior.n_evaluations == 0


@pytest.mark.parametrize("halted", [0.1, 0.9])
def test_neither_compilation_nor_other_programs_are_measured(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, halted: float
) -> None:
    """Calls move a clock on: by 20 s the first, as it compiles, then 0.1 s, or more if halted."""
    now, calls = [0.0], []

    def evaluate(u: np.ndarray) -> np.ndarray:
        now[0] += [20.0, halted, halted, 0.1, halted][len(calls)]
        calls.append(len(u))
        return np.zeros(len(u))

    monkeypatch.setattr(duration, "density", lambda posterior: evaluate)
    monkeypatch.setattr(duration, "perf_counter", lambda: now[0])
    each = duration.seconds_per_evaluation(Posterior(*runs, n_jobs=1))
    assert each == pytest.approx(0.1)


def test_expected_evaluations_are_about_right(emulator: paims.Emulator) -> None:
    ((_, expected),) = duration.expected_evaluations(emulator.posterior_, 500)
    assert 0.3 < emulator.result_.n_evaluations / expected < 3.0


@pytest.mark.parametrize(
    ("n", "p", "n_leads"), [(30, 2, 0), (60, 2, 1), (300, 2, 0), (300, 12, 1)]
)
def test_what_leads_is_forecast_too(n: int, p: int, n_leads: int) -> None:
    X = np.random.default_rng(0).random((n, p))
    prior = affordable_prior(n, p)
    posterior = Posterior(X, np.sin(X.sum(axis=1)), prior=prior)
    found = duration.expected_evaluations(posterior, None)
    assert len(found) == n_leads + 1
    assert found[-1][0] is posterior
    assert found[0][1] > found[-1][1] or not n_leads


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(61.0, "1 minute(s)"), (3600.0, "60 minute(s)"), (9000.0, "2 hours"), (3e5, "3 days")],
)
def test_words(seconds: float, text: str) -> None:
    assert duration._worded(seconds) == text
