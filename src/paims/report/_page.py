"""The page itself: numbers, figures and words put into the template."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

import numpy as np

from paims._arrays import FloatArray, refuse_what_is_no_number
from paims._names import visible
from paims.emulator import Emulator
from paims.emulator._description import Provenance, emulator_facts, facts_in_words
from paims.emulator._scaling import spread
from paims.report._figures import all_figures
from paims.report._mixture import obstacle, page_mixture
from paims.report._study import Study, prediction_at, study
from paims.report._verdict import CRITERIA, Criterion, answers, number

__all__ = ["MAX_ROWS", "render_report"]

MAX_ROWS = 200
_N_DEFAULT = 8

CITATION = """\
Garbuno-Inigo, A., DiazDelaO, F. A., Zuev, K. M. (2016). Gaussian process hyper-parameter \
estimation using Parallel Asymptotically Independent Markov Sampling. Computational Statistics & \
Data Analysis 103, 367-383. https://doi.org/10.1016/j.csda.2016.06.019

The paims developers. paims: Gaussian-process emulators by Parallel Asymptotically Independent \
Markov Sampling. Version {version}."""


def render_report(
    emulator: Emulator,
    provenance: Provenance | None = None,
    *,
    held_out: tuple[Any, Any] | None = None,
    new_inputs: Any = None,
    title: str | None = None,
    numbers: Study | Any = None,
    criteria: Iterable[Criterion] = CRITERIA,
) -> str:
    """Write the report on an emulator as one HTML page.

    Parameters
    ----------
    emulator : Emulator
    provenance : Provenance, optional
        Where the emulator comes from.
    held_out : tuple of (k, n_features) and (k,) array_like, optional
        Runs that the emulator has not seen.
    new_inputs : (k, n_features) array_like, optional
        Inputs to tabulate predictions at; some points of the box of the runs by default.
    title : str, optional
    numbers : Study, optional
        Of the same emulator and held-out runs, if it is known already; a SeveralStudy for an
        emulator of several outputs, for which criteria and new inputs have no use.
    criteria : iterable of callables
        That decide whether the emulator is called trustworthy; see :func:`answers`.

    Returns
    -------
    str
    """
    provenance = Provenance() if provenance is None else provenance
    if hasattr(emulator, "outputs_"):
        from paims.report._several import SeveralStudy, render_several  # noqa: PLC0415 - knows this

        known = numbers if isinstance(numbers, SeveralStudy) else None
        return render_several(emulator, provenance, held_out=held_out, title=title, numbers=known)
    assert numbers is None or isinstance(numbers, Study)
    numbers = study(emulator, held_out) if numbers is None else numbers
    live = page_mixture(emulator)
    facts = emulator_facts(emulator, provenance)
    template = page_template("report.html.jinja")
    script = "\n" + _asset("mixture.js") + "\n" + _asset("page.js")
    page: str = template.render(
        title=title or f"Emulator of {provenance.output}",
        output=provenance.output,
        css=_asset("report.css"),
        script=script,
        policy=_policy(script),
        mixture=None if live is None else _json(live[1]),
        obstacle=obstacle(emulator),
        compression=None if live is None else live[0].compression_,
        study=numbers,
        answers=answers(numbers, criteria),
        figures=all_figures(numbers, provenance.output),
        columns=_columns(numbers, provenance.output),
        predictions=_predictions(numbers, new_inputs),
        settings=facts_in_words(facts),
        versions=provenance.versions,
        warnings=facts["warnings"],
        citation=CITATION.format(version=provenance.versions.get("paims", "unknown")),
    )
    return page


def page_template(name: str) -> Any:
    """A template of a page, in which names are texts and nothing else."""
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415 - an extra

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_without_controls,
    )
    environment.filters["g"] = number
    return environment.from_string(_asset(name))


def _asset(name: str) -> str:
    return (files("paims.report") / "assets" / name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    """Content-Security-Policy: the page's own script runs and no other, and nothing is loaded.

    Styles are free, as the figures have theirs in their elements; they can load nothing either.
    """
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _without_controls(value: Any) -> Any:
    """What the template prints, without marks that would turn the text around them."""
    # Markup, a kind of text, is what is ours.
    return visible(value, keep="\n") if type(value) is str else value


def _json(value: Any) -> str:
    """JSON that cannot end the script element that it stands in."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _columns(numbers: Study, output: str) -> list[dict[str, Any]]:
    """One row for each column of the runs."""
    active = numbers.emulator.inputs_.active
    rows = [
        _column(name, "input" if varies else "input, left out: one value only", values)
        for name, varies, values in zip(numbers.names, active, numbers.X.T, strict=True)
    ]
    return [*rows, _column(output, "output", numbers.y)]


def _column(name: str, role: str, values: FloatArray) -> dict[str, Any]:
    return {
        "name": name,
        "role": role,
        "least": values.min(),
        "median": np.median(values),
        "largest": values.max(),
        "std": spread(values),
    }


def _predictions(numbers: Study, new_inputs: Any) -> dict[str, Any]:
    """Table of predictions: at the new inputs, or at a few points of the box."""
    inputs = numbers.emulator.inputs_
    given = new_inputs is not None
    if given:
        refuse_what_is_no_number("new_inputs", new_inputs)
        X = np.asarray(new_inputs, dtype=np.float64)
    else:
        from scipy.stats import qmc  # noqa: PLC0415 - slow to import

        # The first point of the set is a corner.
        engine = qmc.Sobol(int(inputs.active.sum()), scramble=False).fast_forward(1)
        box = engine.random(_N_DEFAULT)
        X = inputs.undo(box)
    shown = X[:MAX_ROWS]
    mixture = prediction_at(numbers.emulator, shown)
    scaled = inputs.apply(shown)
    outside = np.any((scaled < 0.0) | (scaled > 1.0), axis=1)
    table = np.column_stack(
        [mixture.mean, mixture.std, *mixture.interval(0.5), *mixture.interval(0.95)]
    )
    return {
        "given": given,
        "n": len(X),
        "rows": list(zip(shown.tolist(), table.tolist(), list(map(bool, outside)), strict=True)),
        "outside": int(outside.sum()),
    }
