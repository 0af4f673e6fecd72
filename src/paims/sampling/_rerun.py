"""Go on from a finished run with more points."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from paims.sampling._path import systematic
from paims.sampling._periodic import as_circles
from paims.sampling._recycling import joined_replicates
from paims.sampling._result import SampleResult, SamplingWarning
from paims.sampling._run import Execution, run
from paims.sampling._sample import as_n_samples, as_seed, with_derived
from paims.sampling._search import SearchInfo
from paims.sampling._target import Points


def rerun(
    result: SampleResult, n_samples: int | None, *, random_state: Any, **execution: Any
) -> SampleResult:
    """Run new rounds at temperature 1 from the draws of a result, and join the two samples.

    Given the old draws, the new ones are an importance sample of their own: the joint one is right
    for any proportion of the two, and best in proportion to their effective sizes.
    """
    origin = result.origin
    if origin is None:
        raise ValueError(
            "rerun needs the density, which this result does not have: it was loaded from a file "
            "or sent from another process. Call paims.sample with more n_samples."
        )
    if result.goal != "posterior":
        raise ValueError(
            'rerun goes on at temperature 1; this is a result of goal="optimum". Use '
            "result.posterior.rerun(...)."
        )
    plan, target = origin.plan, origin.target
    if not plan.scheme.recycle:
        raise ValueError(
            "rerun joins recycled samples, which the scheme of this run does not make. Call "
            "paims.sample with more n_samples."
        )
    n_params = result.draws.shape[1]
    wanted = 2 * plan.n_samples if n_samples is None else n_samples
    carried_out = Execution(**execution)
    plan = replace(
        plan,
        n_samples=as_n_samples(wanted, n_params),
        goal="posterior",
        scheme=replace(plan.scheme, n_jobs=carried_out.n_jobs),
        seed=as_seed(random_state),
    )
    target = replace(target, circles=as_circles(plan.periodic, plan.names, target.reference))
    start = _start(result, plan.n_samples, np.random.default_rng(plan.seed))
    log_m = np.asarray(target.reference.log_density(start.theta), dtype=float)
    new = run(target, plan, carried_out, start=replace(start, log_m=log_m))
    return with_derived(_joined(result, new), origin.derived, target.density.vectorized)


def _start(result: SampleResult, n_samples: int, rng: np.random.Generator) -> Points:
    """Draws of each island, equally weighted, for the islands of the new run."""
    assert result.island is not None
    parts = []
    islands = np.unique(result.island)
    for i in islands:
        own = np.flatnonzero(result.island == i)
        own = own[result.weights[own] > 0]
        index = own[systematic(result.weights[own], -(-n_samples // len(islands)), rng)]
        parts.append(
            Points(
                result.draws[index],
                result.log_density[index],
                np.zeros(len(index)),
                np.full(len(index), int(i)),
            )
        )
    return Points.concatenate(parts)


def _joined(old: SampleResult, new: SampleResult) -> SampleResult:
    """One result of two; a sample that is not recycled has nothing to say of the evidence."""
    counted = replace(
        new,
        levels=np.concatenate([old.levels, new.levels]),
        n_evaluations=old.n_evaluations + new.n_evaluations,
        n_nan=old.n_nan + new.n_nan,
        n_rejected=old.n_rejected + new.n_rejected,
        island_log_evidence=old.island_log_evidence,
        search=_searches(old.search, new.search),
    )
    if new.source != "recycled":
        return replace(
            counted,
            **{
                name: getattr(old, name)
                for name in (
                    "draws", "log_density", "weights", "log_evidence", "log_evidence_error",
                    "pareto_k", "source", "island_gap", "island", "replicate", "log_prior",
                    "circles",
                )
            },
        )  # fmt: skip
    if old.source != "recycled":
        return counted
    return _both(old, new, counted)


def _both(old: SampleResult, new: SampleResult, counted: SampleResult) -> SampleResult:
    sizes = np.array([old.effective_size, new.effective_size])
    share = sizes / sizes.sum()
    top = max(old.log_evidence, new.log_evidence)
    evidence = np.exp(np.array([old.log_evidence, new.log_evidence]) - top)
    # The joint weights are those of the two estimates of the integral, not of the two samples.
    weight = share * evidence / float(share @ evidence)
    error = float(np.hypot(*(weight * [old.log_evidence_error, new.log_evidence_error])))
    gap = abs(old.log_evidence - new.log_evidence)
    expected = float(np.hypot(old.log_evidence_error, new.log_evidence_error))
    notes = _notes_of_two_runs(gap, expected, counted.n_samples)
    for text in notes:
        warnings.warn(text, SamplingWarning, stacklevel=5)
    assert old.island is not None
    assert new.island is not None
    assert old.replicate is not None
    assert new.replicate is not None
    both_priors = old.log_prior is not None and new.log_prior is not None
    return replace(
        counted,
        draws=np.concatenate([old.draws, new.draws]),
        log_density=np.concatenate([old.log_density, new.log_density]),
        weights=np.concatenate([weight[0] * old.weights, weight[1] * new.weights]),
        log_evidence=top + float(np.log(share @ evidence)),
        log_evidence_error=max(error, 0.5 * gap) if gap > 2.0 * expected else error,
        pareto_k=max(old.pareto_k, new.pareto_k),
        wanted_size=old.wanted_size + new.wanted_size,
        island=np.concatenate([old.island, new.island]),
        replicate=joined_replicates([old.replicate, new.replicate]),
        log_prior=np.concatenate([old.log_prior, new.log_prior]) if both_priors else None,
        warnings=(*new.warnings, *notes),
    )


def _notes_of_two_runs(gap: float, expected: float, n_samples: int) -> list[str]:
    if gap <= 4.0 * expected + 0.05:
        return []
    return [
        f"The run that went on disagrees with the one before: their log evidences are {gap:.2f} "
        f"apart where about {expected:.2f} is expected. Call paims.sample anew with "
        f"n_samples={2 * n_samples}."
    ]


def _searches(old: SearchInfo | None, new: SearchInfo | None) -> SearchInfo | None:
    if old is None or new is None:
        return old or new
    return SearchInfo(
        old.n_evaluations + new.n_evaluations,
        old.n_starts + new.n_starts,
        old.n_found + new.n_found,
        old.n_screened + new.n_screened,
    )
