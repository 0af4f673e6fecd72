"""Targets for samplers with known truth: evidence, moments and the masses of the modes.

In all of them the density is a likelihood times the reference's normalised density,

    pi(x) = L(x) m(x),      log_evidence = log of the integral of pi(x) dx,

so `log_density` and `reference` are what a sampler is given, and `log_evidence` is what it has
to find. Where the truth has no closed form it is the result of a converged quadrature, to more
digits than any sampler reaches; `test_targets.py` recomputes every number by another route.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import gammaln, logsumexp
from scipy.stats import chi2

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Box:
    """Uniform reference on a box."""

    lower: Floats
    upper: Floats

    def log_pdf(self, x: Floats) -> Floats:
        inside = np.all((x >= self.lower) & (x <= self.upper), axis=-1)
        return np.where(inside, -np.sum(np.log(self.upper - self.lower)), -np.inf)

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        return rng.uniform(self.lower, self.upper, size=(n, self.lower.size))


@dataclass(frozen=True, eq=False)
class LogNormals:
    """Independent log-normal references; `mean` and `sd` are those of log x."""

    mean: Floats
    sd: Floats

    def log_pdf(self, x: Floats) -> Floats:
        positive = np.all(x > 0.0, axis=-1)
        log_x = np.log(np.where(x > 0.0, x, 1.0))
        normal = -0.5 * ((log_x - self.mean) / self.sd) ** 2 - np.log(
            math.sqrt(2.0 * math.pi) * self.sd
        )
        return np.where(positive, np.sum(normal - log_x, axis=-1), -np.inf)

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        return np.exp(rng.normal(self.mean, self.sd, size=(n, self.mean.size)))


@dataclass(frozen=True, eq=False)
class Target:
    """A density with its truth; shapes are (m, d) for points and (m,) for what is computed there.

    `mode_masses[k]` is the probability of the points that `assign_modes` gives the number k.
    `sampler(n, rng)` draws exactly from the normalised density; None where there is no exact way.
    """

    name: str
    d: int
    log_likelihood: Callable[[Floats], Floats]
    reference: Box | LogNormals
    log_evidence: float
    mean: Floats
    sd: Floats
    mode_masses: Floats
    assign_modes: Callable[[Floats], NDArray[np.int64]]
    sampler: Callable[[int, np.random.Generator], Floats] | None = None

    def log_density(self, x: Floats) -> Floats:
        """Log of likelihood times reference density; -inf outside the reference's support."""
        x = np.asarray(x, dtype=float)
        if x.ndim != 2 or x.shape[1] != self.d:
            raise ValueError(f"{self.name} takes points of shape (m, {self.d}); got {x.shape}.")
        log_reference = self.reference.log_pdf(x)
        inside = np.isfinite(log_reference)
        out = np.full(len(x), -np.inf)
        out[inside] = self.log_likelihood(x[inside]) + log_reference[inside]
        return out

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw exactly from the normalised density."""
        if self.sampler is None:
            raise NotImplementedError(f"{self.name} has no exact sampler.")
        return self.sampler(n, rng)


def _cube(lower: float, upper: float, d: int) -> Box:
    return Box(np.full(d, lower), np.full(d, upper))


def _gaussian_mixture(
    name: str, centres: Floats, masses: Floats, chol: Floats, box: Box
) -> Target:
    """Normalised Gaussian mixture, so far inside the box that its edge is not felt.

    `chol` are the Cholesky factors of the covariances. A point belongs to the mode that has the
    highest density there.
    """
    d = centres.shape[1]
    inverse = np.linalg.inv(chol)
    log_det = np.sum(np.log(np.diagonal(chol, axis1=1, axis2=2)), axis=1)
    log_weights = np.log(masses) - log_det - 0.5 * d * math.log(2.0 * math.pi)
    mean = masses @ centres
    variances = np.sum(chol**2, axis=2)

    def log_modes(x: Floats) -> Floats:
        squares = [
            np.sum(((x - centre) @ inv.T) ** 2, axis=1)
            for centre, inv in zip(centres, inverse, strict=True)
        ]
        return log_weights - 0.5 * np.stack(squares, axis=1)

    def sampler(n: int, rng: np.random.Generator) -> Floats:
        chosen = rng.choice(len(masses), size=n, p=masses)
        return centres[chosen] + np.einsum("nab,nb->na", chol[chosen], rng.standard_normal((n, d)))

    return Target(
        name=name,
        d=d,
        log_likelihood=lambda x: logsumexp(log_modes(x), axis=1),
        reference=box,
        log_evidence=-float(np.sum(np.log(box.upper - box.lower))),
        mean=mean,
        sd=np.sqrt(masses @ (variances + (centres - mean) ** 2)),
        mode_masses=masses,
        assign_modes=lambda x: np.argmax(log_modes(x), axis=1),
        sampler=sampler,
    )


def _round(d: int, *sds: float) -> Floats:
    """Cholesky factors of isotropic Gaussians."""
    return np.array([sd * np.eye(d) for sd in sds])


def two_gaussians(d: int) -> Target:
    """0.1 N(-1/2, 0.1^2 I) + 0.9 N(+1/2, 0.1^2 I), U[-2, 2]^d; mode 0 is the small one at -1/2."""
    centres = np.array([np.full(d, -0.5), np.full(d, 0.5)])
    return _gaussian_mixture(
        f"two_gaussians_{d}d",
        centres,
        np.array([0.1, 0.9]),
        _round(d, 0.1, 0.1),
        _cube(-2.0, 2.0, d),
    )


def unequal_gaussians() -> Target:
    """0.15 N(-0.6, 0.10^2 I) + 0.85 N(0.4, 0.13^2 I), U[-2, 2]^10.

    On the way from the reference the narrow one has a smaller share than in the end.
    """
    centres = np.array([np.full(10, -0.6), np.full(10, 0.4)])
    return _gaussian_mixture(
        "unequal_gaussians",
        centres,
        np.array([0.15, 0.85]),
        _round(10, 0.10, 0.13),
        _cube(-2.0, 2.0, 10),
    )


def spike_and_slab(d: int) -> Target:
    """(N(0, 0.1^2 I) + N(0, I)) / 2, U[-8, 8]^d; mode 0 is the ball that holds the spike."""
    target = _gaussian_mixture(
        f"spike_and_slab_{d}d",
        np.zeros((2, d)),
        np.array([0.5, 0.5]),
        _round(d, 0.1, 1.0),
        _cube(-8.0, 8.0, d),
    )
    squared_radius = 0.1**2 * chi2.isf(1e-6, d)
    inside = 0.5 * (1.0 - 1e-6) + 0.5 * chi2.cdf(squared_radius, d)
    return replace(
        target,
        mode_masses=np.array([inside, 1.0 - inside]),
        assign_modes=lambda x: (np.sum(x**2, axis=1) > squared_radius).astype(np.int64),
    )


def random_mixture(seed: int) -> Target:
    """A member of a family: 2 to 10 rotated Gaussians in 2 to 20 dimensions, U[-3, 3]^d.

    Widths along the axes of a mode are from 0.03 to 0.3, masses at least 0.01. Modes are so far
    apart that none has mass near another.
    """
    rng = np.random.default_rng(10_000 + seed)
    d, n_modes = int(rng.integers(2, 21)), int(rng.integers(2, 11))
    masses = 0.01 + (1.0 - 0.01 * n_modes) * rng.dirichlet(np.ones(n_modes))
    centres: list[Floats] = []
    factors: list[Floats] = []
    for _ in range(n_modes):
        widths = 0.03 * 10.0 ** rng.random(d)
        axes, _ = np.linalg.qr(rng.standard_normal((d, d)))
        factor = np.linalg.cholesky((axes * widths**2) @ axes.T)
        for _ in range(10_000):
            centre = rng.uniform(-1.2, 1.2, d)
            distances = [
                min(
                    np.linalg.norm(np.linalg.solve(other, centre - there)),
                    np.linalg.norm(np.linalg.solve(factor, centre - there)),
                )
                for there, other in zip(centres, factors, strict=True)
            ]
            if min(distances, default=np.inf) > 6.0 + math.sqrt(d):
                break
        else:
            raise ValueError(f"No room for {n_modes} modes in {d} dimensions (seed {seed}).")
        centres.append(centre)
        factors.append(factor)
    return _gaussian_mixture(
        f"random_mixture_{seed}_{d}d",
        np.array(centres),
        masses,
        np.array(factors),
        _cube(-3.0, 3.0, d),
    )


def ten_gaussians() -> Target:
    """Ten equal Gaussians of sd 0.1 in U[0, 10]^2, at least 1.3 apart and 1.2 off the edge."""
    centres = np.array(
        [
            [1.5, 1.3], [4.2, 1.9], [7.8, 1.2], [2.6, 3.7], [5.9, 3.6],
            [8.7, 4.4], [1.2, 6.1], [4.6, 6.8], [7.1, 7.9], [2.3, 8.8],
        ]
    )  # fmt: skip
    return _gaussian_mixture(
        "ten_gaussians", centres, np.full(10, 0.1), _round(2, *[0.1] * 10), _cube(0.0, 10.0, 2)
    )


def himmelblau() -> Target:
    """exp(-(x^2 + y - 11)^2 - (x + y^2 - 7)^2), U[-5, 5]^2; modes ++, +-, -+, -- by quadrant."""

    def log_likelihood(p: Floats) -> Floats:
        x, y = p.T
        return -((x**2 + y - 11.0) ** 2) - (x + y**2 - 7.0) ** 2

    return Target(
        name="himmelblau",
        d=2,
        log_likelihood=log_likelihood,
        reference=_cube(-5.0, 5.0, 2),
        log_evidence=-5.503849398259,
        mean=np.array([0.842155732439, 0.302836180974]),
        sd=np.array([3.157291400516, 2.452238124296]),
        mode_masses=np.array([0.340812703808, 0.285441522215, 0.214558402812, 0.159187371164]),
        assign_modes=lambda p: 2 * (p[:, 0] < 0.0) + (p[:, 1] < 0.0).astype(np.int64),
    )


def eggbox() -> Target:
    """exp((2 + cos(x/2) cos(y/2))^5), U[0, 10 pi]^2: 18 modes, ten of them cut by the box.

    The peaks are at 2 pi (i, j) with i + j even. The density is even about each of them in both
    coordinates, so a mode's mass within its nearest-peak cell is 1, 1/2 (edge) or 1/4 (corner)
    of an inner mode's, and an inner mode's is 1/12.5.
    """
    peaks = np.array([(i, j) for i in range(6) for j in range(6) if (i + j) % 2 == 0])
    shares = np.prod(np.where((peaks == 0) | (peaks == 5), 0.5, 1.0), axis=1)

    def assign_modes(p: Floats) -> NDArray[np.int64]:
        return np.argmin(cdist(p / (2.0 * np.pi), peaks), axis=1)

    return Target(
        name="eggbox",
        d=2,
        log_likelihood=lambda p: (2.0 + np.cos(p[:, 0] / 2.0) * np.cos(p[:, 1] / 2.0)) ** 5,
        reference=_cube(0.0, 10.0 * np.pi, 2),
        log_evidence=235.855940332254,
        mean=np.full(2, 5.0 * np.pi),
        sd=np.full(2, 9.398731949673),
        mode_masses=shares / np.sum(shares),
        assign_modes=assign_modes,
    )


def gaussian_shells(d: int) -> Target:
    """Two shells (2 pi w^2)^-1/2 exp(-(|x - c| - r)^2/(2 w^2)), r = 2, w = 0.1, U[-6, 6]^d.

    The centres are at -3.5 (mode 0) and +3.5 (mode 1) on the first axis. The radius has the
    density rho^(d-1) exp(-(rho - r)^2/(2 w^2)), whose moments are Gaussian moments. The box cuts
    each shell 5 w beyond its radius, which costs less than 1e-7 of the mass.
    """
    radius, width, offset = 2.0, 0.1, 3.5

    def moment(k: int) -> float:
        """E (r + w G)^k for a standard normal G, by the binomial theorem."""
        even = (2 * j for j in range(k // 2 + 1))
        return sum(
            math.comb(k, j) * radius ** (k - j) * width**j * math.prod(range(1, j, 2))
            for j in even
        )

    log_sphere = math.log(2.0) + 0.5 * d * math.log(math.pi) - float(gammaln(0.5 * d))
    across = moment(d + 1) / moment(d - 1) / d

    def log_likelihood(x: Floats) -> Floats:
        rest = np.sum(x[:, 1:] ** 2, axis=1)
        distances = np.sqrt((x[:, :1] - np.array([-offset, offset])) ** 2 + rest[:, None])
        log_shells = -0.5 * ((distances - radius) / width) ** 2
        return logsumexp(log_shells, axis=1) - 0.5 * math.log(2.0 * math.pi * width**2)

    def sampler(n: int, rng: np.random.Generator) -> Floats:
        # Radius: Gaussian proposals thinned by rho^(d-1), bounded at ten widths.
        top = radius + 10.0 * width
        radii = np.empty(0)
        while radii.size < n:
            rho = np.abs(radius + width * rng.standard_normal(4 * n + 16))
            radii = np.append(radii, rho[rng.uniform(size=rho.size) < (rho / top) ** (d - 1)])
        direction = rng.standard_normal((n, d))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        x = radii[:n, None] * direction
        x[:, 0] += offset * rng.choice([-1.0, 1.0], size=n)
        return x

    return Target(
        name=f"gaussian_shells_{d}d",
        d=d,
        log_likelihood=log_likelihood,
        reference=_cube(-6.0, 6.0, d),
        log_evidence=math.log(2.0) + log_sphere + math.log(moment(d - 1)) - d * math.log(12.0),
        mean=np.zeros(d),
        sd=np.sqrt(across + np.where(np.arange(d) == 0, offset**2, 0.0)),
        mode_masses=np.array([0.5, 0.5]),
        assign_modes=lambda x: (x[:, 0] > 0.0).astype(np.int64),
        sampler=sampler,
    )


def rosenbrock(a: float = 100.0, b: float = 1.0) -> Target:
    """exp(-a (y - x^2)^2 - b (1 - x)^2) in a box at seven standard deviations: one curved mode.

    x ~ N(1, 1/(2 b)) and y ~ N(x^2, 1/(2 a)), so the integral is pi/sqrt(a b).
    """
    var_x, var_y = 0.5 / b, 0.5 / a
    reach, slack = 7.0 * math.sqrt(var_x), 7.0 * math.sqrt(var_y)
    box = Box(np.array([1.0 - reach, -slack]), np.array([1.0 + reach, (1.0 + reach) ** 2 + slack]))

    def log_likelihood(p: Floats) -> Floats:
        x, y = p.T
        return -a * (y - x**2) ** 2 - b * (1.0 - x) ** 2

    def sampler(n: int, rng: np.random.Generator) -> Floats:
        x = rng.normal(1.0, math.sqrt(var_x), size=n)
        return np.column_stack([x, rng.normal(x**2, math.sqrt(var_y))])

    return Target(
        name="rosenbrock",
        d=2,
        log_likelihood=log_likelihood,
        reference=box,
        log_evidence=math.log(math.pi / math.sqrt(a * b))
        - float(np.sum(np.log(box.upper - box.lower))),
        mean=np.array([1.0, 1.0 + var_x]),
        sd=np.sqrt([var_x, var_y + 4.0 * var_x + 2.0 * var_x**2]),
        mode_masses=np.array([1.0]),
        assign_modes=lambda p: np.zeros(len(p), dtype=np.int64),
        sampler=sampler,
    )


def shear_building() -> Target:
    """Two-storey shear building identified from two frequencies (Betz et al. 2016).

    Masses 16.5e3 and 16.1e3 kg, storey stiffnesses 29.7e6 x_i N/m, measured frequencies 3.13 and
    9.83 Hz; log likelihood -(1/2) 256 sum_j (f_j^2/f~_j^2 - 1)^2. Modes by x1 < 1 and x1 > 1.
    """
    masses, stiffness = (16.5e3, 16.1e3), 29.7e6
    measured = np.array([3.13, 9.83])

    def squared_frequencies(x: Floats) -> Floats:
        # M^-1 K with K = [[k1 + k2, -k2], [-k2, k2]]: trace and determinant; the small root by
        # the product of the roots, without cancellation.
        k1, k2 = stiffness * x.T
        trace = (k1 + k2) / masses[0] + k2 / masses[1]
        product = k1 * k2 / (masses[0] * masses[1])
        high = 0.5 * (trace + np.sqrt(trace**2 - 4.0 * product))
        return np.column_stack([product / high, high]) / (2.0 * np.pi) ** 2

    def log_likelihood(x: Floats) -> Floats:
        misfit = squared_frequencies(x) / measured**2 - 1.0
        return -0.5 * 256.0 * np.sum(misfit**2, axis=1)

    return Target(
        name="shear_building",
        d=2,
        log_likelihood=log_likelihood,
        reference=LogNormals(np.array([0.51024, 0.16958]), np.array([0.49787, 0.62667])),
        log_evidence=-6.495993528295,
        mean=np.array([1.116975023427, 0.593446565208]),
        sd=np.array([0.662371656438, 0.329946045983]),
        mode_masses=np.array([0.530808411695, 0.469191588305]),
        assign_modes=lambda x: (x[:, 0] > 1.0).astype(np.int64),
    )


def all_targets() -> list[Target]:
    """One of each, small dimensions."""
    return [
        two_gaussians(2),
        two_gaussians(10),
        ten_gaussians(),
        himmelblau(),
        eggbox(),
        gaussian_shells(2),
        gaussian_shells(5),
        rosenbrock(),
        shear_building(),
        unequal_gaussians(),
        spike_and_slab(5),
        random_mixture(4),
    ]
