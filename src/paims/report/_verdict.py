"""The numbers of a study, as answers to the questions that people ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from paims.report._study import Study

if TYPE_CHECKING:
    from paims.report._study import FloatArray

# From these shares of explained variance on an emulator is called good, or usable with care.
_GOOD_Q2 = 0.9
_USABLE_Q2 = 0.5


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


def answers(study: Study) -> tuple[Answer, ...]:
    """Answers to the four questions that a report opens with."""
    return (_trust(study), _modes(study), _inputs(study), _next(study))


def _trust(study: Study) -> Answer:
    question = "Is the emulator trustworthy?"
    troubles, notes = [], []
    loo, validation = study.loo, study.validation
    scores = validation.scores if validation is not None else loo.summary if loo else None
    seen = "held-out runs" if validation is not None else "runs left out in turn"
    if scores is not None:
        notes.append(
            f"For {scores.n} {seen} the typical error is {scores.rmse:.3g}, where the outputs "
            f"themselves have a standard deviation of {np.std(study.y):.3g}; "
            f"{scores.coverage_95:.0%} of them lie in their 95 % interval."
        )
    if validation is not None:
        troubles += [text for passed, text in validation.checks.values() if not passed]
    elif loo is not None:
        notes.append("These runs also taught the emulator: runs that it has never seen say more.")
        if not loo.residuals.passed:
            troubles.append(loo.residuals.verdict)
        if not loo.coverage.passed:
            troubles.append(loo.coverage.verdict)
    troubles += list(study.emulator.result_.warnings)
    q2 = scores.q2 if scores is not None else float("nan")
    if not np.isfinite(q2):
        short, tone = "There is nothing to judge it by", "care"
        notes.append("Give runs that it has not seen (--validation).")
    elif q2 < _USABLE_Q2:
        short, tone = "No: it has not learnt the simulator yet", "bad"
    elif troubles and q2 < _GOOD_Q2:
        short, tone = "Not yet: rough, and some checks speak against it", "bad"
    elif troubles:
        short, tone = "With care: some checks speak against it", "care"
    elif q2 < _GOOD_Q2:
        short, tone = "Honest but rough: use its intervals", "care"
    else:
        short, tone = "Yes, within the range of the runs", "good"
    return Answer("trust", question, short, " ".join(notes + troubles), tone)


def _modes(study: Study) -> Answer:
    question = "Is the posterior multimodal?"
    modes = study.emulator.modes_
    if len(modes) < 2:
        text = (
            "The length-scales have one region of high probability; a single best fit would not "
            "mislead about it, though its width is still in the predictions."
        )
        return Answer("modes", question, "No: one explanation of the runs", text, "plain")
    shares = ", ".join(f"{mode.mass:.0%}" for mode in modes[:4])
    listed = "; ".join(f"{mode.mass:.0%}: {mode.says}" for mode in modes[:3])
    text = (
        f"The runs allow {len(modes)} explanations, with probabilities {shares}. A single best "
        f"fit would pick one and hide the rest; these predictions weigh all of them. {listed}."
    )
    return Answer("modes", question, f"Yes: {len(modes)} explanations of the runs", text, "care")


def _inputs(study: Study) -> Answer:
    question = "Which inputs matter?"
    if study.screening is None:
        text = "The trend is a function of yours, so shares of the variance are not computed."
        return Answer("inputs", question, "Not computed", text, "plain")
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
    short = f"Most at {_place(study, run.point)}"
    if ratio < 1.5:
        short = "Little in particular: equally sure everywhere"
    return Answer("next", question, short, text, "plain")


def _place(study: Study, point: FloatArray) -> str:
    active = study.emulator.inputs_.active
    pairs = [
        f"{name} = {value:.3g}"
        for name, value, varies in zip(study.names, point, active, strict=True)
        if varies
    ]
    return ", ".join(pairs)
