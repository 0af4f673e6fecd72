"""PyMC's sequential Monte Carlo."""

from __future__ import annotations

import logging

import numpy as np
import pymc
import pytensor.tensor as pt
from pytensor.graph.op import Op

from benchmarks.peers.problems import Draws, Problem

SETTINGS = {f"draws = {n}": n for n in (1000,)}
HOW = "one point at a time in the unit cube, as a black-box Op in a Potential"


class LogLikelihood(Op):
    """The likelihood as PyTensor sees it: a vector in, a number out."""

    itypes = (pt.dvector,)
    otypes = (pt.dscalar,)

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def perform(self, node: object, inputs: list[np.ndarray], outputs: list[list[object]]) -> None:
        """Evaluate one point."""
        value = self._problem.log_likelihood_in_cube(inputs[0][None])[0]
        outputs[0][0] = np.asarray(max(float(value), -1e300))


def run(problem: Problem, setting: str, seed: int) -> Draws:
    """One population with its own defaults but for the number of draws."""
    logging.getLogger("pymc").setLevel(logging.ERROR)
    with pymc.Model():
        u = pymc.Uniform("u", 0.0, 1.0, shape=problem.d)
        pymc.Potential("likelihood", LogLikelihood(problem)(u))
        found = pymc.sample_smc(
            SETTINGS[setting],
            chains=1,
            cores=1,
            random_seed=seed,
            progressbar=False,
            compute_convergence_checks=False,
        )
    draws = problem.reference.quantile(found.posterior["u"].values[0])
    # A list over the stages in the place of each chain; the last stage has the evidence.
    log_evidence = np.ravel(found.sample_stats["log_marginal_likelihood"].values)[-1]
    return Draws(draws, np.full(len(draws), 1.0 / len(draws)), float(np.ravel(log_evidence)[-1]))
