"""BlackJAX: adaptive tempered SMC with random-walk Metropolis steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import blackjax
import blackjax.smc.resampling
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.smc.inner_kernel_tuning import as_top_level_api as tuned
from scipy.special import expit

from benchmarks.peers.problems import Draws, Problem

SETTINGS = {f"{n} particles": n for n in (1000, 4000, 16000)}
HOW = "batches of particles in the unit cube, the same compiled density by a host callback"
N_STEPS = 10

jax.config.update("jax_enable_x64", True)
# The callback must not wait for the thread that waits for it.
jax.config.update("jax_cpu_enable_async_dispatch", False)


def log_prior(v: jax.Array) -> jax.Array:
    """Uniform on the cube; with u = sigmoid(v) the support has no edge to be rejected at."""
    return jnp.sum(jax.nn.log_sigmoid(v) + jax.nn.log_sigmoid(-v))


@cache
def algorithm(problem: Problem) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Its init and its compiled step: half of the effective size at each temperature."""
    d = problem.d

    def on_host(v: np.ndarray) -> np.ndarray:
        u = expit(np.asarray(v, dtype=float))
        value = problem.log_likelihood_in_cube(u.reshape(-1, d)).reshape(v.shape[:-1])
        return np.maximum(value, -1e300)

    def log_likelihood(v: jax.Array) -> jax.Array:
        shape = jax.ShapeDtypeStruct(v.shape[:-1], jnp.float64)
        return jax.pure_callback(on_host, shape, v, vmap_method="expand_dims")

    def step(key: jax.Array, state: Any, log_density: Any, factor: jax.Array) -> Any:
        walk = blackjax.mcmc.random_walk.normal(factor)
        return blackjax.additive_step_random_walk.build_kernel()(key, state, log_density, walk)

    def parameters(key: jax.Array, state: Any, info: Any) -> dict[str, jax.Array]:
        del key, info
        spread = jnp.atleast_2d(jnp.cov(state.particles.T)) + 1e-12 * jnp.eye(d)
        return {"factor": (2.38 / jnp.sqrt(d) * jnp.linalg.cholesky(spread))[None]}

    made = tuned(
        smc_algorithm=blackjax.adaptive_tempered_smc,
        logprior_fn=log_prior,
        loglikelihood_fn=log_likelihood,
        mcmc_step_fn=step,
        mcmc_init_fn=blackjax.additive_step_random_walk.init,
        resampling_fn=blackjax.smc.resampling.systematic,
        mcmc_parameter_update_fn=parameters,
        initial_parameter_value={"factor": jnp.eye(d)[None]},
        num_mcmc_steps=N_STEPS,
        target_ess=0.5,
    )
    return made.init, jax.jit(made.step)


def start(problem: Problem, setting: str, key: jax.Array) -> Any:
    """Particles of the reference."""
    size = (SETTINGS[setting], problem.d)
    u = jax.random.uniform(key, size, dtype=jnp.float64, minval=1e-15)
    return algorithm(problem)[0](jnp.log(u) - jnp.log1p(-u))


def warm_up(problem: Problem, setting: str) -> None:
    """Compile the step for this number of particles."""
    key = jax.random.key(0)
    algorithm(problem)[1](key, start(problem, setting, key))


def run(problem: Problem, setting: str, seed: int) -> Draws:
    """Anneal from the reference; ten steps with the particles' covariance at each temperature."""
    key, first = jax.random.split(jax.random.key(seed))
    state, advance = start(problem, setting, first), algorithm(problem)[1]
    log_evidence = 0.0
    while float(state.sampler_state.tempering_param) < 1.0:
        key, now = jax.random.split(key)
        state, info = advance(now, state)
        log_evidence += float(info.log_likelihood_increment)
    draws = problem.reference.quantile(expit(np.asarray(state.sampler_state.particles)))
    weights = np.asarray(state.sampler_state.weights)
    return Draws(draws, weights / weights.sum(), log_evidence)
