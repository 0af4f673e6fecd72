"""JAX: the formulas as published, compiled and vectorised over the points."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve

from benchmarks.throughput import FloatArray

jax.config.update("jax_enable_x64", True)


def terms(X: jax.Array, H: jax.Array, y: jax.Array, phi: jax.Array, delta: jax.Array) -> jax.Array:
    """Compute log|K|, log|H'K^-1 H|, S2 and log|I| of one point, as `naive_terms` does."""
    n, q = H.shape
    squares = (X[:, None, :] - X[None, :, :]) ** 2 / (2.0 * phi)
    K0 = jnp.exp(-squares.sum(axis=2))
    L = jnp.linalg.cholesky(K0 + delta * jnp.eye(n))
    K_inv = cho_solve((L, True), jnp.eye(n))
    HKH = H.T @ K_inv @ H
    Q = K_inv - K_inv @ H @ jnp.linalg.solve(HKH, H.T @ K_inv)
    W = jnp.einsum("ij,ijk,jl->kil", K0, squares, Q)
    traces = jnp.einsum("kii->k", W)
    products = jnp.einsum("kil,jli->kj", W, W)
    information = jnp.block([[jnp.full((1, 1), n - q), traces[None]], [traces[:, None], products]])
    log_det_K = 2.0 * jnp.log(jnp.diag(L)).sum()
    slogdet = jnp.linalg.slogdet
    return jnp.array([log_det_K, slogdet(HKH)[1], y @ Q @ y, slogdet(information)[1]])


def batch(
    X: FloatArray, H: FloatArray, y: FloatArray, phi: FloatArray, delta: FloatArray
) -> Callable[[], int]:
    """All points in one call."""
    many = jax.jit(jax.vmap(terms, in_axes=(None, None, None, 0, 0)))
    arguments = [jnp.asarray(a) for a in (X, H, y, phi, delta)]

    def work() -> int:
        many(*arguments).block_until_ready()
        return len(phi)

    return work


ENGINES = {"JAX, batch": batch}
