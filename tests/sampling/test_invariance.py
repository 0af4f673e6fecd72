"""Every branch of the transition leaves the level's density unchanged, and wrong ones do not.

Exact draws make four transitions with markers that know nothing of them. For a function h the mean
change h(after) - h(before) is zero if the density is invariant; its z-score over 20,000 chains is
what is tested, for moments, masses, log p and what the acceptances depend on. With 23 functions
and |z| < 5.5 a right kernel fails once in a million runs; the wrong kernels are beyond 8.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare
from tests.sampling.kit import (
    TOY,
    Floats,
    bent_markers,
    labelled_markers,
    mean_z,
    mixture_of,
    wide_target,
)

from paims.sampling import _transition as transition
from paims.sampling import default_scheme, paper_scheme
from paims.sampling._clusters import Clusters
from paims.sampling._path import log_tempered
from paims.sampling._proposal import MarkerMixture
from paims.sampling._transition import Kernel, Outcome, Proposed

N_CHAINS, N_STEPS = 20_000, 4
LIMIT, SURE = 5.5, 8.0
KERNELS = ["shrinking", "bent", "collapsed", "paper"]
SCHEMES = {kind: default_scheme() for kind in KERNELS} | {"paper": paper_scheme()}
MakeWrong = Callable[[pytest.MonkeyPatch], None]


def poor_markers(kind: str, rng: np.random.Generator) -> MarkerMixture:
    """Markers that match the density badly: shifted, too narrow, unevenly weighted."""
    theta = np.array([0.5, 0.35]) + 0.7 * TOY.sample(80, rng)
    weight = rng.gamma(1.0, size=len(theta))
    log_p = TOY.log_density(theta)
    if kind == "paper":
        return mixture_of(theta, log_p, 0.5, weight, clustered=False, shrinking=False)
    made = bent_markers if kind == "bent" else labelled_markers
    markers = made(theta, log_p, weight, (theta[:, 0] > 0.9).astype(np.int64))
    return MarkerMixture.shrinking(markers, 1.0 if kind == "collapsed" else 0.4)


def one_transition(
    kind: str, mixture: MarkerMixture, start: Floats, rng: np.random.Generator
) -> tuple[Proposed, Proposed, Outcome]:
    """Before, after, and what happened; the candidates are made as a level makes them."""
    target = wide_target()
    before = Proposed.of(target.evaluate(start), 1.0, (mixture,))
    theta, marker = mixture.sample(len(start), rng)
    points = target.evaluate(theta)
    log_p = log_tempered(points, 1.0)
    _, log_p_hat = mixture.log_densities(theta, log_p)
    local = np.log(rng.random(len(theta))) < log_p - mixture.markers.log_p[marker]
    candidate = Proposed(points, log_p, log_p_hat)
    kernel = Kernel(target, 1.0, (mixture,), SCHEMES[kind].second_stage(2))
    after, outcome = transition.step(before, candidate, local, kernel, rng)
    return before, after, outcome


def functions(states: Proposed, mixture: MarkerMixture) -> Floats:
    """Test functions: moments, modes, log p, weights p / p_hat, clusters, local acceptance."""
    x, log_p = states.points.theta, states.log_p
    a, b = x.T
    narrow = (a > 0.6) & (b > -0.5)
    log_w = log_p - states.log_p_hat
    _, log_rho = mixture.markers.clusters.log_responsibilities(np.ascontiguousarray(x))
    return np.column_stack(
        [
            a, b, a**2, b**2, a * b, a**3, narrow, narrow * a, narrow * (a - 1.5) ** 2,
            log_p, log_p**2, *(log_p < level for level in (-5.0, -3.5, -2.5)),
            np.cos(2 * a), np.sin(3 * b), np.clip(log_w, -5.0, 8.0), log_w > 0.0, log_w > 1.0,
            np.exp(log_rho[:, 0]), np.clip(log_rho[:, 0], -5.0, 0.0),
            np.clip(log_rho[:, -1], -5.0, 0.0),
            np.exp(states.log_p_hat - mixture.log_density(x)),
        ]
    )  # fmt: skip


def largest_z(kind: str, seed: int) -> float:
    """Largest z-score of the change of a test function."""
    rng = np.random.default_rng(seed)
    mixture = poor_markers(kind, rng)
    first, after, _ = one_transition(kind, mixture, TOY.sample(N_CHAINS, rng), rng)
    for _ in range(N_STEPS - 1):
        _, after, _ = one_transition(kind, mixture, after.points.theta, rng)
    change = functions(after, mixture) - functions(first, mixture)
    return max(abs(mean_z(column)) for column in change.T)


# --- the branches, one by one ---------------------------------------------------------------


def only_global(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing after a rejection."""
    monkeypatch.setattr(transition, "second_stage", lambda *a: np.zeros(len(a[0]), dtype=bool))


def second_after_global_rejection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A local rejection ends the transition."""
    right = transition.second_stage
    monkeypatch.setattr(transition, "second_stage", lambda *a: right(*a) & a[4])


def second_after_local_rejection(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every candidate had been rejected locally, which does not depend on the chain."""
    right = transition.second_stage
    monkeypatch.setattr(transition, "first_stage", lambda *a: np.zeros(len(a[0]), dtype=bool))
    monkeypatch.setattr(
        transition, "second_stage", lambda *a: right(*a[:4], np.zeros_like(a[4]), *a[5:])
    )


def all_together(monkeypatch: pytest.MonkeyPatch) -> None:
    del monkeypatch


BRANCHES = [only_global, second_after_global_rejection, second_after_local_rejection, all_together]


@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize("branch", BRANCHES, ids=lambda f: f.__name__)
def test_density_is_invariant(
    kind: str, branch: MakeWrong, monkeypatch: pytest.MonkeyPatch
) -> None:
    branch(monkeypatch)
    assert largest_z(kind, seed=0) < LIMIT


@pytest.mark.parametrize("kind", ["shrinking", "paper"])
def test_every_branch_is_exercised(kind: str) -> None:
    # else the tests above would say nothing
    rng = np.random.default_rng(0)
    _, _, outcome = one_transition(kind, poor_markers(kind, rng), TOY.sample(N_CHAINS, rng), rng)
    second = outcome.second_accepted
    assert np.mean(outcome.globally_accepted) > 0.1
    assert np.mean(second & outcome.locally_accepted) > 0.02
    assert np.mean(second & ~outcome.locally_accepted) > 0.02
    assert not np.any(outcome.globally_accepted & ~outcome.locally_accepted)
    assert not np.any(second & outcome.globally_accepted)


@pytest.mark.parametrize("kind", KERNELS)
def test_moments_masses_and_log_density_are_those_of_the_truth(kind: str) -> None:
    # Against closed forms, not against the starts: several transitions, as in a level.
    rng = np.random.default_rng(2)
    mixture = poor_markers(kind, rng)
    x = TOY.sample(N_CHAINS, rng)
    for _ in range(3):
        _, after, _ = one_transition(kind, mixture, x, rng)
        x = after.points.theta
    z = [mean_z(x[:, i], TOY.first_moment[i]) for i in range(2)]
    z += [mean_z(x[:, i] ** 2, TOY.second_moment[i]) for i in range(2)]
    assert np.max(np.abs(z)) < 5.0
    fresh = TOY.log_density(TOY.sample(400_000, rng))
    edges = np.quantile(fresh, np.linspace(0, 1, 21)[1:-1])
    counts = np.bincount(np.searchsorted(edges, TOY.log_density(x)), minlength=20)
    assert chisquare(counts).pvalue > 1e-5


# --- wrong kernels, each of which must be seen ---------------------------------------------


def always_accept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transition, "log_alpha_global", lambda c, s: np.zeros(len(c)))


def plain_metropolis_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        transition, "log_alpha_global", lambda c, s: np.minimum(0.0, c.log_p - s.log_p)
    )


def no_delayed_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second stage without (1 - alpha_g)."""
    right = transition.second_stage

    def wrong(state: Any, first: Any, second: Any, proposal: Any, local: Any, *rest: Any) -> Any:
        return right(state, first, second, proposal, np.zeros_like(local), *rest)

    monkeypatch.setattr(transition, "second_stage", wrong)


def only_forward_factor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second stage with (1 - alpha_g) of the candidate alone."""

    def wrong(s: Any, first: Any, second: Any, q: Any, local: Any, mixtures: Any, u: Any) -> Any:
        _, log_rho = mixtures[0].markers.clusters.log_responsibilities(second.points.theta)
        there = log_rho[np.arange(len(second)), q.cluster]
        stay = transition.log1mexp(transition.log_alpha_global(first, second))
        log_ratio = second.log_p - s.log_p + there - q.log_rho_here
        return u < log_ratio + np.where(local, stay, 0.0)

    monkeypatch.setattr(transition, "second_stage", wrong)


def no_cluster_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second stage without rho_r(xi2) / rho_r(x)."""
    right = transition.second_stage

    def wrong(s: Any, first: Any, second: Any, proposal: Any, *rest: Any) -> Any:
        _, log_rho = rest[1][0].markers.clusters.log_responsibilities(second.points.theta)
        there = log_rho[np.arange(len(second)), proposal.cluster]
        return right(s, first, second, replace(proposal, log_rho_here=there), *rest)

    monkeypatch.setattr(transition, "second_stage", wrong)


def no_jacobian(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second stage of a cluster with a map, without |T'(x)| / |T'(xi2)|."""
    right = Clusters.straightened_by

    def wrong(self: Clusters, x: Floats, cluster: Floats) -> tuple[Floats, Floats]:
        return right(self, x, cluster)[0], np.zeros(len(x))

    monkeypatch.setattr(Clusters, "straightened_by", wrong)


def no_local_acceptance_in_p_hat(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = MarkerMixture.log_density
    monkeypatch.setattr(MarkerMixture, "log_p_hat", lambda self, x, log_p: plain(self, x))
    monkeypatch.setattr(
        MarkerMixture, "log_densities", lambda self, x, log_p: (plain(self, x),) * 2
    )


def perturbed_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The published code: the first state of a chain is the marker plus noise, unadjusted."""
    right = transition.step

    def wrong(state: Any, candidate: Any, local: Any, kernel: Kernel, rng: Any) -> Any:
        theta = state.points.theta
        moved = theta + 0.4 * rng.standard_normal(theta.shape)
        start = kernel.evaluate(moved, state.points.island)
        return right(start, candidate, local, kernel, rng)

    monkeypatch.setattr(transition, "step", wrong)


# The wrong kernel, the branch in which it shows most, the mixtures.
WRONG = [
    (always_accept, all_together, KERNELS),
    (plain_metropolis_ratio, all_together, KERNELS),
    (no_delayed_factors, second_after_global_rejection, KERNELS),
    (no_cluster_ratio, second_after_local_rejection, ["shrinking"]),
    (no_jacobian, second_after_local_rejection, ["bent"]),
    (no_local_acceptance_in_p_hat, only_global, ["collapsed", "paper"]),
    (perturbed_start, all_together, KERNELS),
]


@pytest.mark.parametrize(
    ("break_it", "branch", "kind"),
    [(wrong, branch, kind) for wrong, branch, kinds in WRONG for kind in kinds],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_wrong_kernel_is_seen(
    break_it: MakeWrong, branch: MakeWrong, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_it(monkeypatch)
    branch(monkeypatch)
    assert largest_z(kind, seed=0) > SURE
