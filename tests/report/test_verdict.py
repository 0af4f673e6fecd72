"""What the report says of an emulator, and the criteria that decide it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import paims
from paims import simulators
from paims.report import CRITERIA, Finding, Study, answers, render_report, study
from paims.report._verdict import number


@cache
def _study() -> Study:
    X = simulators.branin.design(18, 4)
    emulator = paims.Emulator(
        "squared_exponential", nugget_prior="uniform", random_state=0, n_samples=400
    )
    emulator.fit(X, simulators.branin(X))
    X = simulators.branin.design(30, 8)
    return study(emulator, (X, simulators.branin(X)))


def _with(numbers: Study, **parts: Any) -> Study:
    """The study with other results of its held-out checks."""
    assert numbers.validation is not None
    return replace(numbers, validation=replace(numbers.validation, **parts))


def _check(passed: bool, safe: bool) -> Any:
    return SimpleNamespace(passed=passed, on_the_safe_side=safe, verdict="The check says so.")


CHECKS = ("residuals", "cholesky", "mahalanobis", "coverage", "uniformity")
FINE: dict[str, Any] = {name: _check(True, False) for name in CHECKS}


@pytest.mark.parametrize("name", CHECKS)
def test_a_failed_check_speaks_against_unless_errors_are_small(name: str) -> None:
    fine = answers(_with(_study(), **FINE))[0]
    assert (fine.short, fine.tone) == ("Yes, within the range of the runs", "good")
    # All other checks passed on the unsafe side: only the one that failed may count.
    unsafe = answers(_with(_study(), **FINE | {name: _check(False, False)}))[0]
    assert (unsafe.short, unsafe.tone) == ("With care: some checks speak against it", "care")
    assert unsafe.text.endswith("The check says so.")
    safe = answers(_with(_study(), **FINE | {name: _check(False, True)}))[0]
    assert (safe.short, safe.tone) == ("Yes: if anything it is too cautious", "good")


def test_one_unsafe_check_among_cautious_ones_speaks_against() -> None:
    mixed = {name: _check(False, True) for name in CHECKS} | {"coverage": _check(False, False)}
    assert answers(_with(_study(), **mixed))[0].tone == "care"


def test_how_much_is_explained_decides_first() -> None:
    for q2, short in (
        (0.95, "Yes, within"), (0.9, "Yes, within"), (0.89, "Honest but rough"),
        (0.5, "Honest but rough"), (0.49, "No: it has not learnt"), (np.nan, "There is nothing"),
    ):  # fmt: skip
        assert _study().validation is not None
        scores = replace(_study().validation.scores, q2=q2)  # type: ignore[union-attr]
        assert answers(_with(_study(), scores=scores, **FINE))[0].short.startswith(short)
    rough = _with(
        _study(), **FINE | {"coverage": _check(False, False)},
        scores=replace(_study().validation.scores, q2=0.7),  # type: ignore[union-attr]
    )  # fmt: skip
    assert answers(rough)[0].tone == "bad"


def test_own_criteria_decide_too() -> None:
    def never(numbers: Study) -> Iterator[Finding]:
        yield Finding(f"I do not trust {len(numbers.y)} runs.")

    def remark(numbers: Study) -> list[Finding]:
        return [Finding("Fitted on a Tuesday.", "note")]

    numbers = _with(_study(), **FINE)
    assert answers(numbers, CRITERIA) == answers(numbers)
    against = answers(numbers, (*CRITERIA, never))[0]
    assert against.tone == "care"
    assert against.text.endswith("I do not trust 18 runs.")
    noted = answers(numbers, (remark, *CRITERIA))[0]
    assert noted.tone == "good"
    assert noted.text.startswith("Fitted on a Tuesday. For 30 held-out runs")
    html = render_report(numbers.emulator, numbers=_study(), criteria=(*CRITERIA, never))
    assert "I do not trust 18 runs." in html


def test_the_samplers_warnings_speak_against() -> None:
    numbers = _with(_study(), **FINE)
    result = replace(numbers.emulator.result_, warnings=("The islands disagree.",))
    troubled = SimpleNamespace(result_=result, modes_=(), inputs_=numbers.emulator.inputs_)
    first = answers(replace(numbers, emulator=troubled))[0]  # type: ignore[arg-type]
    assert first.tone == "care"
    assert first.text.endswith("The islands disagree.")


def test_report_is_there_after_importing_the_library() -> None:
    program = "import paims; assert paims.report.render_report and 'report' in dir(paims)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_interactions_and_inputs_that_do_not_matter_are_named() -> None:
    numbers = _study()
    assert numbers.screening is not None
    screening = numbers.screening

    def said(first: list[float], probability: list[float]) -> str:
        sobol = replace(screening.sobol, first=np.array(first))
        inert = replace(screening.inertness, probability=np.array(probability))
        parts = replace(screening, sobol=sobol, inertness=inert)
        return {a.key: a for a in answers(replace(numbers, screening=parts))}["inputs"].text

    assert "6% comes from inputs acting together" in said([0.5, 0.44], [0.0, 0.0])
    assert "acting together" not in said([0.5, 0.46], [0.0, 0.0])
    assert "x2 can be held fixed" in said([0.5, 0.46], [0.0, 1.0])
    assert "For x1 the runs do not decide" in said([0.5, 0.46], [0.5, 0.0])


def test_the_next_run_is_where_it_is_least_sure() -> None:
    numbers = _study()

    def short(std: float) -> str:
        run = replace(numbers.next_run, std=std, typical_std=1.0)
        return answers(replace(numbers, next_run=run))[3].short

    assert short(1.4) == "Little in particular: equally sure everywhere"
    assert short(1.6).startswith("Most at x1 = ")


def test_the_modes_are_best_told_apart_where_they_differ_in_standard_deviations() -> None:
    numbers = _study()
    emulator, posterior = numbers.emulator, numbers.emulator.posterior_
    assert len(emulator.modes_) == 2
    lengths = np.array([mode.length_scales for mode in emulator.modes_])
    phi = posterior.kernel.from_length_scale(lengths / emulator.inputs_.range)
    u = posterior.from_physical(phi, np.array([mode.nugget for mode in emulator.modes_]))

    def difference(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """By how much the modes' means differ, and that in standard deviations."""
        mean = posterior.predict(u, emulator.inputs_.apply(X)).mean
        gap = emulator.output_.difference(np.abs(mean[0] - mean[1]))
        return gap, gap / emulator.predict(X, return_std=True)[1]

    assert numbers.next_run.telling is not None
    gap, ratio = difference(numbers.next_run.telling[None])
    assert numbers.next_run.difference == pytest.approx(gap[0], rel=1e-6)
    elsewhere = emulator.inputs_.undo(np.random.default_rng(0).random((2000, 2)))
    gaps, ratios = difference(elsewhere)
    assert ratio[0] > 0.95 * ratios.max()
    assert gap[0] < 0.9 * gaps.max()  # the largest difference is elsewhere


def test_of_very_many_held_out_runs_an_even_choice_is_taken() -> None:
    X = simulators.branin.design(302, 8)
    numbers = study(_study().emulator, (X, simulators.branin(X)))
    assert numbers.validation is not None
    assert (numbers.n_held_out, numbers.validation.scores.n) == (302, 101)
    assert "(101 of the 302 given, evenly chosen.)" in render_report(
        numbers.emulator, numbers=numbers
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (15321.7, "15320"),
        (-0.0153217, "-0.01532"),
        (9999996.0, "10000000"),
        (1.53217e7, "1.532e+07"),
        (1.53217e-5, "1.532e-05"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
    ],
)
def test_numbers_as_people_write_them(value: float, text: str) -> None:
    assert number(value) == text
