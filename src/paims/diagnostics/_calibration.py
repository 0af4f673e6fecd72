r"""Are the probabilities right? Probability-integral transform and coverage of intervals.

:math:`u_i = F_i(y_i)` is uniform for a right prediction, and the central interval of level
:math:`\ell` holds :math:`y_i` exactly if :math:`|2 u_i - 1| \le \ell`. Tests of uniformity and
binomial bands take the :math:`u_i` as independent. Predictions from one emulator are not: near-by
points err together, and the tests then cry wolf too often. Given joint samples of the prediction
(:func:`reference_pit`) tests and bands are simulated with the dependence in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom, binomtest, kstwo, rankdata

from paims._arrays import FloatArray
from paims._student import StudentMixtures
from paims.diagnostics._prediction import Prediction, paired
from paims.gp._checks import as_float_array, check_finite

__all__ = ["Coverage", "Uniformity", "coverage_curve", "pit", "reference_pit", "uniformity"]

_LEVELS = np.concatenate([np.arange(1, 20) / 20.0, [0.99]])


@dataclass(frozen=True, eq=False)
class Coverage:
    """Share of outputs inside their central intervals, for several levels.

    Attributes
    ----------
    nominal, empirical : (n_levels,) ndarray
    lower, upper : (n_levels,) ndarray
        Pointwise 95 % band of the empirical share if the prediction is right.
    n : int
        Number of outputs.
    level : float
        The level, among the nominal ones, that the verdict is about: the nearest to 0.95.
    p_value : float
        Two-sided probability of a share so far from that level.
    reference : str
        Where band and probability are from: "binomial" or "simulation".
    """

    nominal: FloatArray
    empirical: FloatArray
    lower: FloatArray
    upper: FloatArray
    n: int
    level: float
    p_value: float
    reference: str

    @property
    def at_level(self) -> float:
        """Empirical coverage at ``level``."""
        return float(self.empirical[np.argmin(np.abs(self.nominal - self.level))])

    @property
    def passed(self) -> bool:
        """Whether the probability is not below 0.01."""
        return self.p_value >= 0.01

    @property
    def on_the_safe_side(self) -> bool:
        """Whether intervals hold at least as many outputs as they promise."""
        return self.at_level >= self.level

    @property
    def verdict(self) -> str:
        """What the numbers say, in words."""
        text = (
            f"{100 * self.level:.3g} % intervals hold {100 * self.at_level:.3g} % of {self.n} "
            f"outputs ({self.reference} p = {self.p_value:.2g}). "
        )
        if self.passed:
            return text + "Intervals cover as they say."
        if self.at_level < self.level:
            return text + (
                "Intervals are too narrow: do not rely on them. Try a rougher kernel, estimate "
                "the nugget or add runs."
            )
        return text + "Intervals are wider than need be: safe, but the emulator is too cautious."


@dataclass(frozen=True, eq=False)
class Uniformity:
    """Probability-integral transforms, and tests of their uniformity.

    Attributes
    ----------
    pit : (k,) ndarray
    ks, ks_p : float
        Kolmogorov-Smirnov statistic and its p-value.
    ad, ad_p : float
        Anderson-Darling statistic and its p-value: looks harder at the tails.
    reference : str
        Where the p-values are from: "independence" or "simulation" (with the dependence).
    edges : (n_bins + 1,) ndarray
    counts : (n_bins,) ndarray
        Histogram.
    lower, upper : float
        Pointwise 95 % band of a bin's count if the prediction is right.
    """

    pit: FloatArray
    ks: float
    ks_p: float
    ad: float
    ad_p: float
    reference: str
    edges: FloatArray
    counts: FloatArray
    lower: float
    upper: float

    @property
    def passed(self) -> bool:
        """Whether neither p-value is below 0.01."""
        return min(self.ks_p, self.ad_p) >= 0.01

    @property
    def _on_one_side(self) -> bool:
        return bool(abs(np.mean(self.pit) - 0.5) > 0.1)

    @property
    def _in_the_tails(self) -> bool:
        return bool(np.mean(np.abs(self.pit - 0.5) > 0.25) > 0.5)

    @property
    def on_the_safe_side(self) -> bool:
        """Whether outputs are as near to the middle of their predictions as announced."""
        return not self._on_one_side and not self._in_the_tails

    @property
    def verdict(self) -> str:
        """What the numbers say, in words."""
        text = (
            f"Probability-integral transforms: Kolmogorov-Smirnov p = {self.ks_p:.2g}, "
            f"Anderson-Darling p = {self.ad_p:.2g} ({self.reference}). "
        )
        if self.passed:
            return text + "No sign against the predicted probabilities."
        if self._on_one_side:
            side = "above" if np.mean(self.pit) > 0.5 else "below"
            return f"{text}On the whole outputs lie {side} the predictions: look at the trend."
        if self._in_the_tails:
            return text + "Outputs fall into the tails too often: predictions are too narrow."
        return text + "Outputs stay near the middle: predictions are too wide."


def pit(y: Any, prediction: Prediction | StudentMixtures) -> FloatArray:
    r"""Probability-integral transforms :math:`F_i(y_i)`, shape ``(k,)``.

    Where a component without spread is hit exactly, half of its step counts.
    """
    y, mixtures = paired(y, prediction)
    return mixtures.tails(y)[0]


def reference_pit(samples: Any) -> FloatArray:
    """Transforms of joint samples of the prediction itself, by their ranks.

    Parameters
    ----------
    samples : (size, k) array_like
        Joint samples of the k outputs; a few hundred at least.

    Returns
    -------
    (size, k) ndarray
        Each column is exactly uniform on its grid, each row as dependent as the outputs are.
    """
    samples = as_float_array("samples", samples, 2)
    check_finite("samples", samples)
    ranks: FloatArray = (rankdata(samples, axis=0) - 0.5) / len(samples)
    return ranks


def _checked(values: Any, reference: Any) -> tuple[FloatArray, FloatArray | None]:
    u = as_float_array("pit", values, 1)
    check_finite("pit", u)
    if not len(u) or u.min() < 0.0 or u.max() > 1.0:
        raise ValueError("pit must hold probabilities, at least one, all in [0, 1].")
    if reference is None:
        return u, None
    reference = as_float_array("reference", reference, 2)
    if reference.shape[1] != len(u) or len(reference) < 100:
        raise ValueError(
            f"reference must have shape (size, {len(u)}) with a size of at least 100; got "
            f"{reference.shape}."
        )
    return u, reference


def coverage_curve(values: Any, levels: Any = None, *, reference: Any = None) -> Coverage:
    """Empirical coverage of central intervals.

    Parameters
    ----------
    values : (k,) array_like
        Probability-integral transforms of the outputs.
    levels : (n_levels,) array_like, optional
        Nominal levels in (0, 1); by default 0.05, 0.10, ..., 0.95, 0.99.
    reference : (size, k) array_like, optional
        Transforms of joint samples (:func:`reference_pit`), for bands that know of dependence.

    Returns
    -------
    Coverage
    """
    u, sampled = _checked(values, reference)
    nominal = _LEVELS if levels is None else as_float_array("levels", levels, 1)
    if not len(nominal) or not ((nominal > 0.0) & (nominal < 1.0)).all():
        raise ValueError(f"levels must lie in (0, 1); got {levels!r}.")
    n = len(u)
    inside = np.abs(2.0 * u - 1.0)[:, None] <= nominal
    chosen = int(np.argmin(np.abs(nominal - 0.95)))
    count = int(inside[:, chosen].sum())
    if sampled is None:
        lower, upper = (binom.ppf(q, n, nominal) / n for q in (0.025, 0.975))
        p_value = float(binomtest(count, n, float(nominal[chosen])).pvalue)
    else:
        folded = np.abs(2.0 * sampled - 1.0)
        shares = np.array([(folded <= level).mean(axis=1) for level in nominal])
        lower, upper = np.quantile(shares, [0.025, 0.975], axis=1)
        counts = np.rint(n * shares[chosen])
        p_value = _two_sided(counts, count)
    return Coverage(
        nominal=nominal,
        empirical=inside.mean(axis=0),
        lower=lower,
        upper=upper,
        n=n,
        level=float(nominal[chosen]),
        p_value=p_value,
        reference="binomial" if sampled is None else "simulation",
    )


def _two_sided(simulated: FloatArray, observed: float) -> float:
    """Two-sided p-value of a statistic among simulated ones."""
    size = len(simulated)
    below = (1.0 + np.sum(simulated <= observed)) / (1.0 + size)
    above = (1.0 + np.sum(simulated >= observed)) / (1.0 + size)
    return float(min(1.0, 2.0 * min(below, above)))


def uniformity(values: Any, *, n_bins: int | None = None, reference: Any = None) -> Uniformity:
    """Test probability-integral transforms for uniformity.

    Parameters
    ----------
    values : (k,) array_like
        Probability-integral transforms of the outputs.
    n_bins : int, optional
        Bins of the histogram; by default 10, or fewer for less than 50 outputs.
    reference : (size, k) array_like, optional
        Transforms of joint samples (:func:`reference_pit`): p-values and band are then
        simulated, with the dependence between outputs.

    Returns
    -------
    Uniformity
    """
    u, sampled = _checked(values, reference)
    n = len(u)
    n_bins = max(2, min(10, n // 5)) if n_bins is None else n_bins
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    counts = np.histogram(u, edges)[0].astype(np.float64)
    ks, ad = float(_ks(u[None])[0]), float(anderson_darling(u[None])[0])
    if sampled is None:
        ks_p = float(kstwo.sf(ks, n))
        ad_p = 1.0 - anderson_darling_cdf(ad, n)
        lower, upper = (float(binom.ppf(q, n, 1.0 / n_bins)) for q in (0.025, 0.975))
    else:
        size = len(sampled)
        ks_p = float((1.0 + np.sum(_ks(sampled) >= ks)) / (1.0 + size))
        ad_p = float((1.0 + np.sum(anderson_darling(sampled) >= ad)) / (1.0 + size))
        bins = np.minimum((sampled * n_bins).astype(np.intp), n_bins - 1)
        simulated = np.array([(bins == j).sum(axis=1) for j in range(n_bins)])
        lower, upper = (float(q) for q in np.quantile(simulated, [0.025, 0.975]))
    kind = "independence" if sampled is None else "simulation"
    return Uniformity(u, ks, ks_p, ad, ad_p, kind, edges, counts, lower, upper)


def _ks(u: FloatArray) -> FloatArray:
    """Kolmogorov-Smirnov distance from the uniform, for each row."""
    u = np.sort(u, axis=1)
    n = u.shape[1]
    i = np.arange(1, n + 1)
    return np.asarray(np.maximum(i / n - u, u - (i - 1) / n).max(axis=1))


def anderson_darling(u: FloatArray) -> FloatArray:
    r""":math:`A^2 = -n - \frac1n \sum (2i-1) \{\log u_{(i)} + \log(1-u_{(n+1-i)})\}`, by row."""
    u = np.clip(np.sort(u, axis=1), np.finfo(float).tiny, 1.0 - np.finfo(float).epsneg)
    n = u.shape[1]
    i = np.arange(1, n + 1)
    terms = np.log(u) + np.log1p(-u[:, ::-1])
    return np.asarray(-n - (2 * i - 1) @ terms.T / n)


def anderson_darling_cdf(a2: float, n: int) -> float:
    """Distribution function of A^2 for n uniforms (Marsaglia & Marsaglia 2004), to about 1e-6."""
    if not a2 > 0.0:
        return 0.0
    if a2 < 2.0:
        series = np.polyval([0.00168691, -0.011672, 0.0347962, -0.0649821, 0.247105, 2.00012], a2)
        limit = np.exp(-1.2337141 / a2) / np.sqrt(a2) * series
    else:
        series = np.polyval([0.0003146, -0.008056, 0.082433, -0.43424, 2.30695, -1.0776], a2)
        limit = np.exp(-np.exp(-series))
    x = float(limit)
    crossing = 0.01265 + 0.1757 / n
    if x > 0.8:
        correction = (
            np.polyval([-255.7844, 1116.360, -1950.646, 1705.091, -745.2337, 130.2137], x) / -n
        )
    elif x < crossing:
        s = x / crossing
        shape = np.sqrt(s) * (1.0 - s) * (49.0 * s - 102.0)
        correction = shape * (0.0037 / n**2 + 0.00078 / n + 0.00006) / n
    else:
        s = (x - crossing) / (0.8 - crossing)
        shape = np.polyval([1.91864, -8.259, 14.458, -14.6538, 6.54034, -0.00022633], s)
        correction = shape * (0.04213 + 0.01365 / n) / n
    return float(np.clip(x + correction, 0.0, 1.0))
