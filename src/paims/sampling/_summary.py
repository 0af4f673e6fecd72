"""A result in words: what was checked and what could not be, and the summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from paims.sampling._recycling import SETTLED_K

if TYPE_CHECKING:
    from paims._arrays import Array
    from paims.sampling._modes import Mode
    from paims.sampling._result import SampleResult

_AGREEMENT = 1.01  # R-hat above which chains are said to disagree (Vehtari et al. 2021)
_MOST_MODES = 10


class Check(NamedTuple):
    """Something that was checked, or that could not be.

    Attributes
    ----------
    what : str
        What was looked at.
    outcome : str
        What was seen.
    passed : bool or None
        None if nothing can be said.
    """

    what: str
    outcome: str
    passed: bool | None


def checks_of(result: SampleResult) -> list[Check]:
    """Everything that was checked about a result, and what could not be."""
    sampled = result if result.posterior is None else result.posterior
    return [
        _goal(result),
        _weights(sampled),
        _rounds(sampled),
        _evidence(sampled),
        _means_and_masses(sampled),
        _search(sampled),
    ]


def _goal(result: SampleResult) -> Check:
    return Check("the goal", str(result.status), result.status.name == "converged")


def _weights(result: SampleResult) -> Check:
    what = "tail of the importance weights"
    if np.isnan(result.pareto_k):
        return Check(what, "not checked: the draws are those of the last level", None)
    settled = bool(result.pareto_k < SETTLED_K)
    word = "below" if settled else "not below"
    return Check(what, f"Pareto k = {result.pareto_k:.2f}, {word} {SETTLED_K}", settled)


def _rounds(result: SampleResult) -> Check:
    what = "effective size"
    size, wanted = result.effective_size, result.wanted_size
    if result.source != "recycled" or not wanted > 0:
        return Check(what, f"{size:.0f}; the run aimed at no size", None)
    n_rounds = int(np.count_nonzero(result.levels["beta"] == 1.0))
    rounds = f"{n_rounds} round{'s' * (n_rounds != 1)} at temperature 1"
    if size >= wanted:
        return Check(what, f"{size:.0f}, at least the {wanted:.0f} aimed at, in {rounds}", True)
    return Check(what, f"{size:.0f} of {wanted:.0f} aimed at, when {rounds} were over", False)


def _evidence(result: SampleResult) -> Check:
    what = "log evidences of the two islands"
    gap, expected = result.island_gap
    if np.isnan(gap):
        return Check(what, "not checked: there are no two islands to compare", None)
    agree = gap <= 4.0 * expected + 0.05
    return Check(what, f"{gap:.3f} apart where about {expected:.3f} is expected", agree)


def _means_and_masses(result: SampleResult) -> Check:
    what = "means and masses of the two islands"
    agreement = result.island_agreement
    if np.isnan(agreement):
        return Check(what, "not checked: there are no two islands to compare", None)
    agree = agreement < _AGREEMENT
    word = "below" if agree else "not below"
    return Check(what, f"R-hat = {agreement:.4f}, {word} {_AGREEMENT}", agree)


def _search(result: SampleResult) -> Check:
    what = "search for missed modes"
    found = result.search
    if found is None:
        return Check(
            what,
            "not made: a mode that no level has seen may have been missed",
            None,
        )
    share = 3.0 / max(found.n_screened, 1)
    return Check(
        what,
        f"{found.n_found} found by {found.n_starts} climbs, {found.n_screened} points screened; a "
        f"mode whose basin holds less than about {share:.1g} of the reference and of every level "
        "may have been missed",
        True,
    )


def summary_of(result: SampleResult) -> str:
    """Table of the parameters, evidence, modes, agreement, checks and what to do."""
    modes = result.modes()
    return "\n".join(
        [
            *_table(result),
            f"log evidence {result.log_evidence:.4f} +- {result.log_evidence_error:.4f}; "
            f"effective size {result.effective_size:.0f} of {len(result.draws)} draws "
            f"({result.source}); {result.n_evaluations} evaluations in {len(result.levels)} "
            "levels",
            str(result.status),
            *_mode_lines(modes),
            *_check_lines(result),
            *(f"warning: {text}" for text in result.warnings),
        ]
    )


def _table(result: SampleResult) -> list[str]:
    names = [*result.names, *result.derived]
    width = max(9, *(len(name) for name in names))
    header = f"{'':{width}} {'mean':>10} {'sd':>10} {'5 %':>10} {'median':>10} {'95 %':>10}"
    levels = (0.05, 0.5, 0.95)
    moments = [*zip(result.mean, result.sd, result.quantile(levels).T, strict=True)]
    moments += [_moments(values, result.weights, levels) for values in result.derived.values()]
    rows = [
        f"{name:{width}} {m:10.4g} {s:10.4g} " + " ".join(f"{q:10.4g}" for q in quantiles)
        for name, (m, s, quantiles) in zip(names, moments, strict=True)
    ]
    return [header, *rows]


def _moments(
    values: Array, weights: Array, levels: tuple[float, ...]
) -> tuple[float, float, Array]:
    mean = float(weights @ values)
    sd = float(np.sqrt(weights @ (values - mean) ** 2))
    return mean, sd, np.quantile(values, levels, weights=weights, method="inverted_cdf")


def _mode_lines(modes: list[Mode]) -> list[str]:
    lines = [f"{len(modes)} mode{'s' * (len(modes) != 1)}:"] + [
        f"  mass {mode.mass:.4f} +- {mode.mass_error:.4f} at "
        f"{np.array2string(mode.location, precision=4, separator=', ')}"
        for mode in modes[:_MOST_MODES]
    ]
    return lines + [f"  and {len(modes) - _MOST_MODES} more"] * (len(modes) > _MOST_MODES)


def _check_lines(result: SampleResult) -> list[str]:
    checks = result.checks
    words = {True: "ok", False: "NOT OK", None: "unknown"}
    lines = [f"  {words[c.passed]:7} {c.what}: {c.outcome}" for c in checks]
    failed = [check.what for check in checks if check.passed is False]
    if not failed:
        return ["checks:", *lines, "what to do: nothing, no check failed"]
    if result.status.name != "converged":
        return ["checks:", *lines, "what to do: let the run go on until it reaches its goal"]
    return [
        "checks:",
        *lines,
        f"what to do: more points, because of {', '.join(failed)}: "
        f"result.rerun(n_samples={2 * result.n_samples}) goes on from here",
    ]
