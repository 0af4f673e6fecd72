r"""Evidence: the log density of the outputs under a model, and one that kernels compare by.

The reference prior has no known total, and its total differs between kernels (by a factor of four
on fifteen runs of Branin): ratios of evidences under it are not odds. The jointly robust prior
integrates to 1 under every kernel. The evidence under it needs no run of its own. With draws u of
the posterior under any other prior,

.. math:: Z_{JR} = Z \, E\!\left[ \frac{p_{JR}(u)}{p(u)} \right],

the ratio of the two densities of u, in which the likelihood cancels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, logsumexp

from paims._arrays import FloatArray
from paims.emulator._scaling import OutputScaling
from paims.gp import EstimatedNugget, JointlyRobust, Posterior, SpikeSlabNugget
from paims.inference import density
from paims.sampling import SampleResult
from paims.sampling._path import systematic

# Draws that the expectation is taken over: its error is then a hundredth or two.
_N_DRAWS = 1024
#: The prior under which kernels are compared; independent of the nugget, so its total is known.
COMPARISON = JointlyRobust(include_nugget=False)


@dataclass(frozen=True)
class Evidence:
    """Log density of the outputs in the user's units, and its Monte-Carlo standard error."""

    log_evidence: float
    error: float


def log_evidence(posterior: Posterior, output: OutputScaling, result: SampleResult) -> float:
    """Log density of the outputs in the user's units, with the likelihood's constants."""
    freedom = posterior.n_runs - posterior.n_basis  # beta and sigma2 are integrated out
    return float(
        result.log_evidence
        + gammaln(0.5 * freedom)
        - 0.5 * freedom * np.log(np.pi)
        - posterior.n_runs * output.log_scale
    )


def comparable_evidence(
    posterior: Posterior, output: OutputScaling, result: SampleResult
) -> Evidence:
    """Evidence under a prior whose total is known, so that ratios between kernels are odds.

    That is the posterior's own prior if it integrates to 1, else the jointly robust one.

    Parameters
    ----------
    posterior : Posterior
    output : OutputScaling
    result : SampleResult
        Of sampling the posterior.
    """
    sampled = result if result.posterior is None else result.posterior
    own = log_evidence(posterior, output, sampled)
    if posterior.prior.normalised and not posterior.nugget.uses_information:
        return Evidence(own, sampled.log_evidence_error)
    log_mean, error = _log_mean_ratio(_comparison_posterior(posterior), sampled)
    return Evidence(own + log_mean, float(np.hypot(sampled.log_evidence_error, error)))


def _comparison_posterior(posterior: Posterior) -> Posterior:
    """The posterior under the prior of comparisons."""
    nugget = posterior.nugget
    if nugget.uses_information:
        nugget = EstimatedNugget(SpikeSlabNugget())
    return Posterior(
        posterior.X,
        posterior.y,
        posterior.kernel,
        posterior.mean,
        COMPARISON,
        nugget,
        n_jobs=posterior.n_jobs,
    )


def _log_mean_ratio(other: Posterior, result: SampleResult) -> tuple[float, float]:
    """Log of the mean over the draws of the other density over theirs, and its error."""
    chosen = systematic(result.weights, _N_DRAWS, np.random.default_rng(0))
    index, count = np.unique(chosen, return_counts=True)
    ratio: FloatArray = density(other)(result.draws[index]) - result.log_density[index]
    log_mean = float(logsumexp(ratio, b=count / count.sum()))
    if not np.isfinite(log_mean):
        return -np.inf, np.inf
    share = count * np.exp(ratio - log_mean) / count.sum()
    return log_mean, float(np.sqrt(np.sum((share - count / count.sum()) ** 2)))
