"""The simulators of Garbuno-Inigo, DiazDelaO and Zuev (2016), as printed and as they were run.

Both two-dimensional functions of the paper exist in two variants that differ in one term. The
variant that made the authors' published designs carries the plain name.
"""

from __future__ import annotations

import numpy as np

from paims.simulators._simulator import Columns, Floats, Input, Output, Simulator

_PAPER = (
    "Garbuno-Inigo, A., DiazDelaO, F. A., Zuev, K. M. (2016). Gaussian process hyper-parameter "
    "estimation using Parallel Asymptotically Independent Markov Sampling. Computational "
    "Statistics & Data Analysis 103, 367-383"
)
_FORRESTER = (
    "Forrester, A., Sobester, A., Keane, A. (2008). Engineering Design via Surrogate Modelling. "
    "Wiley, appendix"
)
_BASTOS = (
    "Bastos, L. S., O'Hagan, A. (2009). Diagnostics for Gaussian process emulators. "
    "Technometrics 51, 425-438, section 5.1"
)
_UNIT_SQUARE = (Input("x1", 0.0, 1.0), Input("x2", 0.0, 1.0))


def _branin_standard(columns: Columns) -> Floats:
    """(x2 - 5.1 x1^2/(4 pi^2) + 5 x1/pi - 6)^2 + 10 [(1 - 1/(8 pi)) cos x1 + 1]."""
    x1, x2 = columns
    valley = x2 - 5.1 / (4.0 * np.pi**2) * x1**2 + 5.0 / np.pi * x1 - 6.0
    return valley**2 + 10.0 * ((1.0 - 1.0 / (8.0 * np.pi)) * np.cos(x1) + 1.0)


def _branin(columns: Columns) -> Floats:
    """Branin in 15 x1 - 5 and 15 x2, plus 5 x1."""
    x1, x2 = columns
    return _branin_standard((15.0 * x1 - 5.0, 15.0 * x2)) + 5.0 * x1


def _branin_printed(columns: Columns) -> Floats:
    """Branin in 15 x1 - 5 and 15 x2, plus 5 (15 x1 - 5)."""
    x1, x2 = columns
    return _branin_standard((15.0 * x1 - 5.0, 15.0 * x2)) + 5.0 * (15.0 * x1 - 5.0)


def _two_d_model(columns: Columns) -> Floats:
    """[1 - exp(-1/(2 x2))] (2300 x1^3 + 1900 x1^2 + 2092 x1 + 60)/(600 x1^2 + 4 x1 + 20)."""
    x1, x2 = columns
    return _saturation(x2) * _cubic(x1) / (100.0 * x1**2 + 500.0 * x1**2 + 4.0 * x1 + 20.0)


def _two_d_model_cited(columns: Columns) -> Floats:
    """As the 2D model, with the denominator 100 x1^3 + 500 x1^2 + 4 x1 + 20."""
    x1, x2 = columns
    return _saturation(x2) * _cubic(x1) / (100.0 * x1**3 + 500.0 * x1**2 + 4.0 * x1 + 20.0)


def _saturation(x2: Floats) -> Floats:
    # expm1 keeps the digits for large x2; at x2 = 0 the exponent is -inf and the factor 1.
    # The sign of a negative zero would turn that into an overflow, so it is dropped.
    return -np.expm1(-0.5 / np.where(x2 == 0.0, 0.0, x2))


def _cubic(x1: Floats) -> Floats:
    return 2300.0 * x1**3 + 1900.0 * x1**2 + 2092.0 * x1 + 60.0


def _wave(columns: Columns) -> Floats:
    """5 + x + cos x + sin(3 x)/2."""
    (x,) = columns
    return 5.0 + x + np.cos(x) + 0.5 * np.sin(3.0 * x)


branin = Simulator(
    name="branin",
    inputs=_UNIT_SQUARE,
    output=Output("y"),
    reference=f"{_FORRESTER}; design of {_PAPER}, section 5.1",
    formula=_branin,
    description=(
        "Branin's function rescaled to the unit square, plus 5 x1: the form of the book and of "
        "the 18 published runs. The term makes one of the three minima the global one."
    ),
)

branin_printed = Simulator(
    name="branin_printed",
    inputs=_UNIT_SQUARE,
    output=Output("y"),
    reference=f"{_PAPER}, section 5.1",
    formula=_branin_printed,
    description=(
        "Branin's function as the paper prints it: the added term is 5 (15 x1 - 5), fifteen "
        "times as steep as the one that the published runs were made with."
    ),
)

branin_standard = Simulator(
    name="branin_standard",
    inputs=(Input("x1", -5.0, 10.0), Input("x2", 0.0, 15.0)),
    output=Output("y"),
    reference=(
        "Dixon, L. C. W., Szego, G. P. (1978). The global optimization problem: an introduction. "
        "Towards Global Optimization 2, 1-15"
    ),
    formula=_branin_standard,
    description="Branin's function as usual in optimisation: three equal minima of 0.397887.",
)

two_d_model = Simulator(
    name="two_d_model",
    inputs=_UNIT_SQUARE,
    output=Output("y"),
    reference=f"{_PAPER}, section 5.2",
    formula=_two_d_model,
    description=(
        "The 2D model as the paper prints it and as its 20 published runs were made: the "
        "denominator has 100 x1^2 + 500 x1^2 where the cited source has 100 x1^3 + 500 x1^2."
    ),
)

two_d_model_cited = Simulator(
    name="two_d_model_cited",
    inputs=_UNIT_SQUARE,
    output=Output("y"),
    reference=_BASTOS,
    formula=_two_d_model_cited,
    description="The 2D model as in the source that the paper cites.",
)

wave = Simulator(
    name="wave",
    inputs=(Input("x", -5.0, 5.0),),
    output=Output("y"),
    reference=f"{_PAPER}, figure 1",
    formula=_wave,
    description=(
        "The one-dimensional example of the paper's first figure. The paper gives no range; "
        "[-5, 5] is what the authors' published script for it plots."
    ),
)
