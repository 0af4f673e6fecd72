"""The posterior and the predictions from their definitions, with 60 digits of mpmath.

Written to be plainly right, not fast: inverses and determinants as the formulas have them, and
derivatives with respect to log phi by mpmath's numerical differentiation. ``python -m
tests.gp.oracle`` computes the cases anew and writes ``oracle.json``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np

from paims.gp import KERNELS

DIGITS = 60
VALUES = Path(__file__).with_name("oracle.json")
LOWER = mp.mpf("1e-12")


def factor(kernel: str, d: Any, phi: Any, power: float) -> Any:
    """Correlation of one input at the distance d."""
    if d == 0:
        return mp.mpf(1)
    if kernel == "squared_exponential":
        return mp.exp(-(d**2) / (2 * phi))
    if kernel == "power_exponential":
        return mp.exp(-((d / phi) ** mp.mpf(power)))
    # Every Matern, such as "matern52", by its definition for any smoothness.
    name, numerator, denominator = kernel[:6], kernel[6:-1], kernel[-1]
    assert (name, denominator) == ("matern", "2")
    nu = mp.mpf(int(numerator)) / 2
    t = mp.sqrt(2 * nu) * d / phi
    return 2 ** (1 - nu) / mp.gamma(nu) * t**nu * mp.besselk(nu, t)


def basis(name: str, x: list[Any]) -> list[Any]:
    """Regressors of one input."""
    one = [mp.mpf(1)]
    products = [x[i] * x[j] for i in range(len(x)) for j in range(i, len(x))]
    return {"zero": [], "constant": one, "linear": one + x, "quadratic": one + x + products}[name]


def correlation(kernel: str, power: float, x: list[Any], w: list[Any], log_phi: list[Any]) -> Any:
    """k(x, w | phi)."""
    result = mp.mpf(1)
    if kernel.startswith("radial_"):  # one factor, of one distance
        scaled = [(a - b) / mp.exp(v) for a, b, v in zip(x, w, log_phi, strict=True)]
        distance = mp.sqrt(sum(s**2 for s in scaled))
        return factor(kernel.removeprefix("radial_"), distance, mp.mpf(1), power)
    for a, b, log_range in zip(x, w, log_phi, strict=True):
        result *= factor(kernel, abs(a - b), mp.exp(log_range), power)
    return result


def derivative(
    kernel: str, power: float, x: list[Any], w: list[Any], log_phi: list[Any], i: int
) -> Any:
    """Derivative of k with respect to log phi_i, by numerical differentiation."""
    if x == w:
        return mp.mpf(0)

    def along(t: Any) -> Any:
        moved = list(log_phi)
        moved[i] = t
        return correlation(kernel, power, x, w, moved)

    return mp.diff(along, log_phi[i])


class Oracle:
    """A Gaussian process at one point of its hyper-parameters."""

    def __init__(
        self,
        X: Any,
        y: Any,
        kernel: str,
        power: float,
        mean: str,
        log_phi: Any,
        nugget: Any,
    ) -> None:
        self.X = [[mp.mpf(float(v)) for v in row] for row in X]
        self.y = mp.matrix([mp.mpf(float(v)) for v in y])
        self.kernel, self.power, self.mean = kernel, power, mean
        self.log_phi = [mp.mpf(v) for v in log_phi]
        self.nugget = mp.mpf(nugget)
        self.n, self.p = len(self.X), len(self.X[0])
        self.q = len(basis(mean, self.X[0]))
        self.K = self._matrix(lambda x, w: correlation(kernel, power, x, w, self.log_phi))
        self.K += self.nugget * mp.eye(self.n)
        self.K_inv = self.K**-1
        self.Q = self.K_inv
        if self.q:
            self.H = mp.matrix([basis(mean, x) for x in self.X])
            self.HKH = self.H.T * self.K_inv * self.H
            self.Q = self.K_inv - self.K_inv * self.H * self.HKH**-1 * self.H.T * self.K_inv
            self.beta = self.HKH**-1 * self.H.T * self.K_inv * self.y
        self.S2 = (self.y.T * self.Q * self.y)[0]

    def _matrix(self, entry: Any) -> Any:
        return mp.matrix([[entry(x, w) for w in self.X] for x in self.X])

    def core_terms(self, information: bool = True) -> dict[str, Any]:
        """Determinants, S2 and, unless left out, the information matrices' determinants."""
        terms = {
            "log_det_K": mp.log(mp.det(self.K)),
            "log_det_HKH": mp.log(mp.det(self.HKH)) if self.q else mp.mpf(0),
            "S2": self.S2,
        }
        if not information:
            return terms
        W = [
            self._matrix(
                lambda x, w, i=i: derivative(self.kernel, self.power, x, w, self.log_phi, i)
            )
            * self.Q
            for i in range(self.p)
        ]
        terms["log_det_I"] = self._log_det_information(W)
        if self.nugget > 0:
            W = [*W, self.nugget * self.Q]
            terms["log_det_I_with_nugget"] = self._log_det_information(W)
        return terms

    def _log_det_information(self, W: list[Any]) -> Any:
        information = mp.matrix(len(W) + 1)
        information[0, 0] = self.n - self.q
        for i, A in enumerate(W):
            information[0, i + 1] = information[i + 1, 0] = sum(A[k, k] for k in range(self.n))
            for j, B in enumerate(W):
                information[i + 1, j + 1] = sum(
                    A[k, m] * B[m, k] for k in range(self.n) for m in range(self.n)
                )
        return mp.log(mp.det(information))

    def predict(self, X_new: Any, include_nugget: bool) -> tuple[Any, Any]:
        """Mean and scale matrix of the Student-t, as the paper's equations have them."""
        new = [[mp.mpf(float(v)) for v in row] for row in X_new]
        k = len(new)

        def corr(x: list[Any], w: list[Any]) -> Any:
            return correlation(self.kernel, self.power, x, w, self.log_phi)

        t = mp.matrix([[corr(x, w) for w in new] for x in self.X])
        mean = t.T * self.K_inv * (self.y - (self.H * self.beta if self.q else 0 * self.y))
        scale = mp.matrix([[corr(x, w) for w in new] for x in new]) - t.T * self.K_inv * t
        if self.q:
            h = mp.matrix([basis(self.mean, x) for x in new])
            mean += h * self.beta
            gap = h - t.T * self.K_inv * self.H
            scale += gap * self.HKH**-1 * gap.T
        if include_nugget:
            scale += self.nugget * mp.eye(k)
        return mean, scale * self.S2 / (self.n - self.q)

    def log_prior(self, prior: str, terms: dict[str, Any], nugget_row: bool) -> Any:
        """Log density in log phi of the priors at their defaults."""
        if prior == "reference":
            return terms["log_det_I_with_nugget" if nugget_row else "log_det_I"] / 2
        if prior == "log_normal":
            return sum(-(v**2) / 18 - mp.log(3) - mp.log(2 * mp.pi) / 2 for v in self.log_phi)
        if prior == "log_laplace":
            return sum(-abs(v) / 2 - mp.log(4) for v in self.log_phi)
        if prior == "jointly_robust":
            n, p, a = mp.mpf(self.n), mp.mpf(self.p), mp.mpf(0.2)
            halving = 2 if self.kernel == "squared_exponential" else 1
            C = [
                (max(x[i] for x in self.X) - min(x[i] for x in self.X)) / n ** (1 / p)
                for i in range(self.p)
            ]
            inverse = [mp.exp(-v / halving) for v in self.log_phi]
            rate = (a + p) / n ** (1 / p)
            t = sum(c * b for c, b in zip(C, inverse, strict=True)) + self.nugget
            constant = mp.gamma(p) * rate ** (a + p) * mp.fprod(C) / mp.gamma(a + p)
            jacobian = mp.fprod(b / halving for b in inverse)
            return mp.log(constant * t**a * mp.exp(-rate * t) * jacobian)
        return mp.mpf(0)


def _spike_and_slab(nugget: Any) -> Any:
    """Density of the spike-and-slab prior at its defaults, its mass by quadrature."""
    a, b, w = mp.mpf(1e-8), mp.mpf(1e-5), mp.mpf(0.1)

    def spike(d: Any) -> Any:
        return d / ((d**2 + a**2) * (1 + d**2 / b**2))

    mass = mp.quad(
        lambda t: spike(mp.exp(t)) * mp.exp(t), [mp.log(LOWER), mp.log(a), mp.log(b), 0]
    )
    return w * spike(nugget) / mass + (1 - w) / (1 - LOWER)


def gradient(case: dict[str, Any], step: str = "1e-20") -> list[float]:
    """Gradient of the log posterior in u, by central differences with 60 digits."""
    h = mp.mpf(step)
    estimated = case["z"] is not None
    u = [mp.mpf(v) for v in [*case["log_phi"], *([case["z"]] if estimated else [])]]

    def value(v: list[Any]) -> Any:
        moved = {**case, "log_phi": v[: len(case["log_phi"])], "z": v[-1] if estimated else None}
        return log_posterior(moved)["log_posterior"]

    with mp.workdps(DIGITS):
        unit = [[h * (i == k) for i in range(len(u))] for k in range(len(u))]
        moved = [[[a + s * b for a, b in zip(u, e, strict=True)] for s in (1, -1)] for e in unit]
        return [float((value(up) - value(down)) / (2 * h)) for up, down in moved]


def log_posterior(case: dict[str, Any]) -> dict[str, Any]:
    """Terms of the log posterior at the case's u = (log phi, z)."""
    z = case["z"]
    nugget = (
        mp.mpf(case["nugget"]) if z is None else LOWER + (1 - LOWER) / (1 + mp.exp(-mp.mpf(z)))
    )
    oracle = Oracle(
        case["X"], case["y"], case["kernel"], case["power"], case["mean"], case["log_phi"], nugget
    )
    core = oracle.core_terms(case["prior"] == "reference")
    nugget_row = case["nugget_prior"] == "reference"
    log_prior = oracle.log_prior(case["prior"], core, nugget_row)
    log_nugget_prior = log_jacobian = mp.mpf(0)
    if z is not None:
        mass = mp.betainc(0.5, 0.5, LOWER, 1)
        log_nugget_prior = {
            "uniform": -mp.log(1 - LOWER),
            "beta": mp.log((nugget * (1 - nugget)) ** mp.mpf(-0.5) / mass),
            "reference": -mp.log(nugget),
            "spike_slab": mp.log(_spike_and_slab(nugget)),
        }[case["nugget_prior"]]
        log_jacobian = mp.log((1 - LOWER) * mp.exp(-mp.mpf(z)) / (1 + mp.exp(-mp.mpf(z))) ** 2)
    total = (
        -mp.mpf(oracle.n - oracle.q) / 2 * mp.log(core["S2"])
        - core["log_det_K"] / 2
        - core["log_det_HKH"] / 2
        + log_prior
        + log_nugget_prior
        + log_jacobian
    )
    return {
        "log_posterior": total,
        "log_det_K": core["log_det_K"],
        "log_det_HKH": core["log_det_HKH"],
        "S2": core["S2"],
        "log_prior": log_prior,
        "log_nugget_prior": log_nugget_prior,
        "log_jacobian": log_jacobian,
    }


def cases() -> list[dict[str, Any]]:
    """Every kernel, basis, prior and nugget treatment, on designs of 9 to 12 runs.

    Those of a kernel do not depend on which other kernels there are.
    """
    result: list[dict[str, Any]] = []

    def add(
        n: int, p: int, kernel: str, mean: str, prior: str, nugget_prior: str, z: float | None
    ) -> None:
        X = np.round(rng.random((n, p)) * rng.choice([1.0, 3.0], p), 3)
        y = np.round(np.sin(4.0 * X[:, 0]) + X[:, -1] ** 2 + X.sum(axis=1), 3)
        log_phi = np.round(rng.normal(-1.0, 1.0, p), 2)
        result.append(
            {
                "X": X.tolist(),
                "y": y.tolist(),
                "kernel": kernel,
                "power": float(rng.choice([1.9, 1.3])),
                "mean": mean,
                "prior": prior,
                "nugget_prior": nugget_prior,
                "nugget": 1e-6 if z is None else None,
                "z": z,
                "log_phi": log_phi.tolist(),
            }
        )

    for kernel in KERNELS:
        rng = np.random.default_rng(list(kernel.encode()))
        for p, mean in [(2, "zero"), (1, "constant"), (3, "linear"), (2, "quadratic")]:
            add(11, p, kernel, mean, "reference", "uniform", round(rng.uniform(-12.0, 1.0), 2))
        for prior in ["jointly_robust", "log_normal", "log_laplace", "flat"]:
            add(9, 2, kernel, "linear", prior, "beta", round(rng.uniform(-12.0, 3.0), 2))
        add(9, 2, kernel, "linear", "reference", "beta", -8.0)
        for z in [-10.0, -1.0, 2.0]:
            add(10, 2, kernel, "linear", "reference", "reference", z)
        add(10, 1, kernel, "zero", "reference", "reference", 0.5)
        add(10, 2, kernel, "constant", "reference", "uniform", None)
        add(10, 2, kernel, "constant", "jointly_robust", "uniform", None)
    return result


def compute(case: dict[str, Any]) -> dict[str, float]:
    """Values of a case, rounded to double precision."""
    with mp.workdps(DIGITS):
        return {key: float(value) for key, value in log_posterior(case).items()}


def main() -> None:
    """Write ``oracle.json``."""
    rows = [{**case, "expected": compute(case)} for case in cases()]
    VALUES.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


if __name__ == "__main__":
    main()
