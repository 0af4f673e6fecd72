"""The numbers of a study, as answers to the questions that people ask."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from paims._arrays import FloatArray
from paims.diagnostics import Scores
from paims.emulator._scaling import spread
from paims.report._study import Study

__all__ = ["CRITERIA", "Answer", "Criterion", "Finding", "answers", "number"]

# From these shares of explained variance on an emulator is called good, or usable with care.
_GOOD_Q2 = 0.9
_USABLE_Q2 = 0.5
# Inputs of a place that a short answer names.
_N_SHORT = 3


@dataclass(frozen=True)
class Answer:
    """An answer in plain words.

    Attributes
    ----------
    key : str
        Short name, for machines.
    question, short, text : str
        What is asked, the answer in a few words, and why.
    tone : {"good", "care", "bad", "plain"}
    """

    key: str
    question: str
    short: str
    text: str
    tone: str


@dataclass(frozen=True)
class Finding:
    """What a criterion of the first answer, whether the emulator is trustworthy, has found.

    Attributes
    ----------
    text : str
        A sentence or two for the page.
    kind : {"against", "cautious", "note"}
        Whether it speaks against the emulator, says that errors are smaller than announced, or
        is only worth knowing.
    """

    text: str
    kind: str = "against"


#: Looks at a study; what it finds goes into the first answer.
Criterion = Callable[[Study], Iterable[Finding]]


def _typical_error(study: Study) -> Iterable[Finding]:
    scores = _scores(study)
    if scores is not None:
        seen = "held-out runs" if study.validation is not None else "runs left out in turn"
        yield Finding(
            f"For {scores.n} {seen} the typical error is {scores.rmse:.3g}, where the outputs "
            f"themselves have a standard deviation of {spread(study.y):.3g}; "
            f"{scores.coverage_95:.0%} of them lie in their 95 % interval.",
            "note",
        )


def _sampler_warnings(study: Study) -> Iterable[Finding]:
    return [Finding(warning) for warning in study.emulator.result_.warnings]


def _held_out_checks(study: Study) -> Iterable[Finding]:
    if study.validation is None:
        return []
    kind = "cautious" if study.validation.on_the_safe_side else "against"
    return [Finding(text, kind) for passed, text in study.validation.checks.values() if not passed]


def _left_out_checks(study: Study) -> Iterable[Finding]:
    if study.validation is not None:
        return
    if study.loo is None:
        yield Finding("Give runs that it has not seen (--validation).", "note")
        return
    taught = "These runs also taught the emulator: runs that it has never seen say more."
    yield Finding(taught, "note")
    for passed, text in study.loo.checks.values():
        if not passed:
            yield Finding(text)


#: The criteria of a report, in the order in which they speak.
CRITERIA: tuple[Criterion, ...] = (
    _typical_error,
    _sampler_warnings,
    _held_out_checks,
    _left_out_checks,
)


def answers(study: Study, criteria: Iterable[Criterion] = CRITERIA) -> tuple[Answer, ...]:
    """Answers to the four questions that a report opens with.

    Parameters
    ----------
    study : Study
    criteria : iterable of callables
        Each takes the study and returns findings; they decide the first answer.
    """
    return (_trust(study, criteria), _modes(study), _inputs(study), _next(study))


def _scores(study: Study) -> Scores | None:
    """Scores that the emulator is judged by: of held-out runs if there are any."""
    if study.validation is not None:
        return study.validation.scores
    return None if study.loo is None else study.loo.summary


def _trust(study: Study, criteria: Iterable[Criterion]) -> Answer:
    found = [finding for criterion in criteria for finding in criterion(study)]
    against = [finding.text for finding in found if finding.kind == "against"]
    others = [finding.text for finding in found if finding.kind != "against"]
    cautious = any(finding.kind == "cautious" for finding in found)
    scores = _scores(study)
    q2 = scores.q2 if scores is not None else float("nan")
    short, tone = _judged(q2, bool(against), cautious)
    text = " ".join(others + against)
    return Answer("trust", "Is the emulator trustworthy?", short, text, tone)


def _judged(q2: float, troubled: bool, cautious: bool) -> tuple[str, str]:
    """The answer in a few words, and its tone."""
    if not np.isfinite(q2):
        return "There is nothing to judge it by", "care"
    if q2 < _USABLE_Q2:
        return "No: it has not learnt the simulator yet", "bad"
    good = q2 >= _GOOD_Q2
    if troubled:
        start, tone = ("With care:", "care") if good else ("Not yet: rough, and", "bad")
        return f"{start} some checks speak against it", tone
    if not good:
        return "Honest but rough: use its intervals", "care"
    if cautious:
        return "Yes: if anything it is too cautious", "good"
    return "Yes, within the range of the runs", "good"


def _modes(study: Study) -> Answer:
    question = "Is the posterior multimodal?"
    # Every kernel explains the runs in its own way; what counts are the ways under one of them.
    modes = [m for m in study.emulator.modes_ if m.kernel == study.emulator.map_.kernel]
    total = sum(mode.mass for mode in modes)
    modes = [replace(mode, mass=mode.mass / total) for mode in modes] if study.kernels else modes
    if len(modes) < 2:
        text = (
            "The length-scales have one region of high probability; a single best fit would not "
            "mislead about it, though its width is still in the predictions."
        )
        return Answer("modes", question, "No: one explanation of the runs", text, "plain")
    shares = ", ".join(f"{mode.mass:.0%}" for mode in modes[:4])
    listed = ". ".join(
        f"{letter} ({mode.mass:.0%}): {mode.says}"
        for letter, mode in zip("ABC", modes[:3], strict=False)
    )
    kernel = modes[0].kernel.replace("_", " ")
    start = f"Under the {kernel} kernel the" if study.kernels else "The"
    text = (
        f"{start} runs allow {len(modes)} explanations, with probabilities {shares}. A single "
        "best fit would pick one and hide the rest; these predictions weigh all of them. "
        f"{listed}."
    )
    return Answer("modes", question, f"Yes: {len(modes)} explanations of the runs", text, "care")


def _inputs(study: Study) -> Answer:
    question = "Which inputs matter?"
    if study.screening is None:
        return Answer("inputs", question, "Not computed", study.why_no_shares, "plain")
    sobol, inert = study.screening.sobol, study.screening.inertness
    order = np.argsort(-sobol.total, kind="stable")
    ranked = [name for name in (sobol.names[i] for i in order) if name not in inert.inert]
    short = ", ".join(ranked[:4]) + (", ..." if len(ranked) > 4 else "")
    shares = ", ".join(f"{sobol.names[i]} {sobol.total[i]:.0%}" for i in order[:8])
    text = f"Share of the output's variance that involves each input: {shares}."
    if len(order) > 8:
        text += f" The other {len(order) - 8} have less."
    if sobol.interactions >= 0.05:
        text += f" {sobol.interactions:.0%} comes from inputs acting together."
    if inert.inert:
        text += f" {', '.join(inert.inert)} can be held fixed."
    if inert.undecided:
        text += f" For {', '.join(inert.undecided)} the runs do not decide."
    return Answer("inputs", question, short or "None clearly", text, "plain")


def _next(study: Study) -> Answer:
    question = "What would another run help with?"
    run = study.next_run
    text = (
        f"The emulator is least sure at {_place(study, run.point)}: there its standard deviation "
        f"is {run.std:.3g}, against a typical {run.typical_std:.3g}."
    )
    if run.telling is not None and run.difference > 0.0:
        text += (
            f" A run at {_place(study, run.telling)} would best tell the two likeliest "
            f"explanations apart: they differ by {run.difference:.3g} there."
        )
    ratio = run.std / run.typical_std if run.typical_std > 0.0 else np.inf
    short = f"Most at {_place(study, run.point, _N_SHORT)}"
    if ratio < 1.5:
        short = "Little in particular: equally sure everywhere"
    return Answer("next", question, short, text, "plain")


def _place(study: Study, point: FloatArray, most: int | None = None) -> str:
    """A point in words; of many inputs those that matter most, if only some are wanted."""
    shown = np.flatnonzero(study.emulator.inputs_.active)
    left = most is not None and len(shown) > most
    if left and study.screening is not None:
        shown = shown[np.sort(np.argsort(-study.screening.sobol.total, kind="stable")[:most])]
    elif left:
        shown = shown[:most]
    pairs = [f"{study.names[i]} = {number(point[i], 3)}" for i in shown]
    return ", ".join(pairs) + (", ..." if left else "")


def number(value: float, digits: int = 4) -> str:
    """A number to some significant digits: 15300 and 0.0153, not 1.53e+04; 1.5e+07 and 1.5e-05."""
    value = float(value)
    if value == 0.0 or not math.isfinite(value):
        return f"{value:g}"
    if abs(value) >= 1e7 or abs(value) < 1e-3:
        return f"{value:.{digits}g}"
    return f"{float(f'{value:.{digits}g}'):.12g}"
