"""The report on several outputs: a summary, a section for each of a few, a field's curve."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from paims._arrays import FloatArray
from paims._names import shortened, visible
from paims.emulator import Emulator
from paims.emulator._description import Provenance
from paims.emulator._several_description import Checked, check_outputs, several_facts
from paims.plots import _style
from paims.report._figures import Figure, _canvas, _coverage, _figure, _residuals
from paims.report._mixture import page_mixture
from paims.report._page import CITATION, _asset, _json, _policy, page_template
from paims.report._verdict import Answer, number

__all__ = ["SeveralStudy", "render_several", "several_answers", "several_study"]

# Outputs that have a section of their own; of more, so many of the worst have one.
_SECTIONS = 12
_WORST = 6
_GOOD_Q2 = 0.9
# Rows of the table of all outputs.
_ROWS = 60
# Processes that a page has room for.
_PROCESSES = 32


@dataclass(frozen=True, eq=False)
class SeveralStudy:
    """Numbers about an emulator of several outputs.

    Attributes
    ----------
    emulator : Emulator
    checked : list of Checked
        By falling share of the variance that is not explained.
    held_out : bool
        Whether the checks are against runs that it has not seen.
    """

    emulator: Emulator
    checked: list[Checked]
    held_out: bool

    @property
    def sections(self) -> list[Checked]:
        """Those that have a section."""
        return self.checked if len(self.checked) <= _SECTIONS else self.checked[:_WORST]


def several_study(
    emulator: Emulator, held_out: tuple[FloatArray, FloatArray] | None = None
) -> SeveralStudy:
    """Compute all numbers of a report; ``held_out`` has inputs and a table of outputs."""
    checked = sorted(check_outputs(emulator, held_out), key=lambda one: one.scores.q2)
    return SeveralStudy(emulator, checked, held_out is not None)


def several_answers(study: SeveralStudy) -> tuple[Answer, ...]:
    """Answers to what people ask of several outputs."""
    checked, emulator = study.checked, study.emulator
    failed = [one for one in checked if not one.passed]
    rough = [one for one in checked if not one.scores.q2 >= _GOOD_Q2]
    seen = "held-out runs" if study.held_out else "runs left out in turn"
    coverage = float(np.mean([one.scores.coverage_95 for one in checked]))
    text = (
        f"{len(checked) - len(failed)} of {len(checked)} outputs pass all checks by {seen}; on "
        f"average {coverage:.0%} lie in their 95 % intervals."
    )
    if rough:
        named = ", ".join(one.name for one in rough[:5]) + (", ..." if len(rough) > 5 else "")
        text += f" Less than {_GOOD_Q2:.0%} of the variance is explained for {named}."
    many = len(failed) > 0.1 * len(checked)
    if not many and not rough:
        short, tone = "Yes, within the range of the runs", "good"
    elif many:
        which = f"{len(failed)} outputs" if len(failed) > 1 else failed[0].name
        short, tone = f"With care: checks speak against {which}", "care"
    else:
        which = f"{len(rough)} outputs are" if len(rough) > 1 else f"{rough[0].name} is"
        short, tone = f"For most: {which} rough", "care"
    worst = checked[0]
    share = f"{worst.scores.q2:.1%} of its variance is explained"
    return (
        Answer("trust", "Is the emulator trustworthy?", short, text, tone),
        Answer(
            "worst",
            "Which output is learnt worst?",
            worst.name,
            f"{share}; its typical error is {number(worst.scores.rmse, 3)}.",
            "plain",
        ),
        Answer("way", "How were the outputs learnt?", emulator.way_, f"{emulator.why_}.", "plain"),
    )


def render_several(
    emulator: Emulator,
    provenance: Provenance,
    *,
    held_out: tuple[Any, Any] | None = None,
    title: str | None = None,
    numbers: SeveralStudy | None = None,
) -> str:
    """Write the report on an emulator of several outputs as one HTML page."""
    study = several_study(emulator, held_out) if numbers is None else numbers
    facts = several_facts(emulator, provenance)
    template = page_template("several.html.jinja")
    script = "\n" + _asset("mixture.js") + "\n" + _asset("field.js")
    data = page_field(emulator)
    page: str = template.render(
        title=title or f"Emulator of {len(emulator.output_names_)} outputs",
        css=_asset("report.css"),
        script=script,
        policy=_policy(script),
        data=None if data is None else _json(data),
        field=is_field(emulator),
        curve=_curve(emulator) if is_field(emulator) else None,
        study=study,
        facts=facts,
        answers=several_answers(study),
        rows=study.checked[:_ROWS],
        sections=[_section(study, one, place) for place, one in enumerate(study.sections)],
        settings=_settings(facts),
        versions=provenance.versions,
        warnings=facts["warnings"],
        citation=CITATION.format(version=provenance.versions.get("paims", "unknown")),
    )
    return page


def _settings(facts: dict[str, Any]) -> list[tuple[str, str]]:
    named = [(key.replace("_", " "), str(value)) for key, value in facts["settings"].items()]
    if facts["seconds"] is not None:
        named.append(("time of the fit", f"{facts['seconds']:.1f} s"))
    return named


def _section(study: SeveralStudy, one: Checked, place: int) -> dict[str, Any]:
    """What is shown of one output."""
    emulator = study.emulator
    own = emulator[one.name]
    figures: list[Figure] = []
    key = f"output-{place}"
    if one.validation is not None:
        found, what = one.validation, "held-out runs"
        figures.append(_residuals(found.residuals, key, what, "Runs that it has never seen."))
        figures.append(_coverage(found.coverage, f"{key}-coverage", what))
        verdict, checks = found.scores.verdict, found.checks
    else:
        assert one.loo is not None
        left, what = one.loo, "left-out runs"
        figures.append(_residuals(left.residuals, key, what, "Each run predicted from others."))
        figures.append(_coverage(left.coverage, f"{key}-coverage", what))
        verdict, checks = left.verdict, left.checks
    modes = [(mode.mass, mode.says) for mode in getattr(own, "modes_", ())]
    return {
        "name": one.name,
        "key": key,
        "verdict": verdict,
        "checks": checks,
        "figures": figures,
        "modes": modes[:4],
    }


def _curve(emulator: Emulator) -> Figure:
    """The field in the middle of the range of the runs."""
    inputs = emulator._several.inputs
    middle = inputs.undo(np.full((1, int(inputs.active.sum())), 0.5))
    mean, std = emulator._several.joint(middle)._moments()
    place = np.array(positions(emulator.output_names_))
    order = np.argsort(place, kind="stable")
    canvas = _canvas(7.2, 3.0)
    ax = canvas.subplots()
    _style.quiet(ax)
    x, low, high = place[order], (mean - 1.96 * std)[0, order], (mean + 1.96 * std)[0, order]
    ax.fill_between(x, low, high, color=_style.BAND, linewidth=0)
    ax.plot(x, mean[0, order], color=_style.BLUE)
    text = "All outputs in the middle of the range of the inputs, with 95 % bands."
    return _figure(canvas, "field", text, text)


def is_field(emulator: Emulator) -> bool:
    """Whether the outputs are points of a field: names that differ by a number only, or many."""
    names = emulator.output_names_
    stems = {re.sub(r"[-+]?\d+(\.\d+)?", "", name) for name in names}
    return emulator.way_ == "components" or (len(names) > 2 and len(stems) == 1)


def positions(names: tuple[str, ...]) -> list[float]:
    """Where the outputs of a field lie: the numbers in their names, or their order."""
    found = [re.findall(r"[-+]?\d+(?:\.\d+)?", name) for name in names]
    if all(len(numbers) == 1 for numbers in found):
        values = [float(numbers[0]) for numbers in found]
        if len(set(values)) == len(values):
            return values
    return [float(j) for j in range(len(names))]


def page_field(emulator: Emulator) -> dict[str, Any] | None:
    """What the page's script needs to move outputs with the inputs; None without room for it."""
    several = emulator._several
    mapping = several.mapping
    names = list(mapping.names)
    if several.way == "components":
        processes: list[Any] = list(several.emulators)
        shown = list(range(len(names)))
    else:
        shown = [j for j in range(len(names)) if j not in several.certain]
        if len(shown) > _PROCESSES:
            return None
        processes = [emulator.outputs_[j] for j in shown]
    made = [page_mixture(one, len(processes)) for one in processes]
    live = [found[1] for found in made if found is not None]
    if len(live) < len(processes):
        return None
    scalings = [mapping.scalings[j] for j in shown]
    E = mapping.residuals
    return {
        "names": [shortened(visible(names[j]), 40) for j in shown],
        "positions": positions(tuple(names[j] for j in shown)),
        "curve": is_field(emulator),
        "mixtures": live,
        "loadings": None if mapping.loadings is None else mapping.loadings.tolist(),
        "noise": None if mapping.noise is None else np.sum(mapping.noise**2, axis=0).tolist(),
        "correlation": None if mapping.loadings is None else (E.T @ E).tolist(),
        "shift": [float(scaling.value(np.array(0.0))) for scaling in scalings],
        "scale": [float(scaling.difference(np.array(1.0))) for scaling in scalings],
    }
