r"""Evidence: the log density of the outputs under a model, and one that kernels compare by.

The reference prior has no known total, and its total differs between kernels (by a factor of four
on fifteen runs of Branin): ratios of evidences under it are not odds. Evidences compare under one
proper prior of the lengths :math:`\ell_i` that is the same for every kernel,

.. math:: \log(\ell_i / \mathrm{range}_i) \sim N(1, 2^2) \text{ independently},

which has 95 % of its mass between a twentieth of an input's range and 150 ranges. The evidence
under it needs no run of its own. With draws u of the posterior under any other prior,

.. math:: Z_c = Z \, E\!\left[ \frac{p_c(u)}{p(u)} \right],

the ratio of the two densities of u, in which the likelihood cancels. For that the tails have to be
lighter than those of the prior that was sampled. The normal ones are; those of the jointly robust
prior, whose total is known too, are heavier than the reference prior's, and on vague runs the
estimate would be off by a factor of two with an error that says nothing of it.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, logsumexp

from paims.emulator._scaling import OutputScaling
from paims.gp import EstimatedNugget, Kernel, LogNormal, Posterior, SpikeSlabNugget
from paims.inference import density
from paims.sampling import SampleResult

# Of the log of a length in units of the input's range, which is 1 for scaled inputs.
_MEAN, _SD = 1.0, 2.0


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


def comparison_prior(kernel: Kernel) -> LogNormal:
    """The prior under which kernels are compared, as one of a kernel's phi, for scaled inputs."""
    return LogNormal(kernel.phi_power * _MEAN, kernel.phi_power * _SD)


def comparable_evidence(
    posterior: Posterior, output: OutputScaling, result: SampleResult
) -> Evidence:
    """Evidence under a prior whose total is known, so that ratios between kernels are odds.

    That is the posterior's own prior if it integrates to 1, else :func:`comparison_prior`.

    Parameters
    ----------
    posterior : Posterior
        Of scaled inputs.
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
    other = copy(posterior)
    other.prior = comparison_prior(posterior.kernel)
    if posterior.nugget.uses_information:
        other.nugget = EstimatedNugget(SpikeSlabNugget.of_inputs(posterior.n_inputs))
    return other


def _log_mean_ratio(other: Posterior, result: SampleResult) -> tuple[float, float]:
    """Log of the mean over the draws of the other density over theirs, and its error.

    All draws count, those of small weight too: under the other density they may have more.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        log_weight = np.log(result.weights) + density(other)(result.draws) - result.log_density
    log_weight = np.where(result.weights > 0.0, log_weight, -np.inf)
    log_mean = float(logsumexp(log_weight))
    if not np.isfinite(log_mean):
        return -np.inf, np.inf
    difference = np.exp(log_weight - log_mean) - result.weights
    return log_mean, float(np.sqrt(np.sum(difference**2)))
