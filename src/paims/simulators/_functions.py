"""The simulators of the paper, and those that the emulation literature is compared on.

Both two-dimensional functions of Garbuno-Inigo, DiazDelaO and Zuev (2016) exist in two variants
that differ in one term: as printed and as they were run. The variant that made the authors'
published designs carries the plain name.
"""

from __future__ import annotations

import numpy as np

from paims._arrays import FloatArray
from paims.simulators._simulator import Columns, Input, Output, Simulator

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


def _branin_standard(columns: Columns) -> FloatArray:
    """(x2 - 5.1 x1^2/(4 pi^2) + 5 x1/pi - 6)^2 + 10 [(1 - 1/(8 pi)) cos x1 + 1]."""
    x1, x2 = columns
    valley = x2 - 5.1 / (4.0 * np.pi**2) * x1**2 + 5.0 / np.pi * x1 - 6.0
    return valley**2 + 10.0 * ((1.0 - 1.0 / (8.0 * np.pi)) * np.cos(x1) + 1.0)


def _branin(columns: Columns) -> FloatArray:
    """Branin in 15 x1 - 5 and 15 x2, plus 5 x1."""
    x1, x2 = columns
    return _branin_standard((15.0 * x1 - 5.0, 15.0 * x2)) + 5.0 * x1


def _branin_printed(columns: Columns) -> FloatArray:
    """Branin in 15 x1 - 5 and 15 x2, plus 5 (15 x1 - 5)."""
    x1, x2 = columns
    return _branin_standard((15.0 * x1 - 5.0, 15.0 * x2)) + 5.0 * (15.0 * x1 - 5.0)


def _two_d_model(columns: Columns) -> FloatArray:
    """[1 - exp(-1/(2 x2))] (2300 x1^3 + 1900 x1^2 + 2092 x1 + 60)/(600 x1^2 + 4 x1 + 20)."""
    x1, x2 = columns
    return _saturation(x2) * _cubic(x1) / (100.0 * x1**2 + 500.0 * x1**2 + 4.0 * x1 + 20.0)


def _two_d_model_cited(columns: Columns) -> FloatArray:
    """As the 2D model, with the denominator 100 x1^3 + 500 x1^2 + 4 x1 + 20."""
    x1, x2 = columns
    return _saturation(x2) * _cubic(x1) / (100.0 * x1**3 + 500.0 * x1**2 + 4.0 * x1 + 20.0)


def _saturation(x2: FloatArray) -> FloatArray:
    # expm1 keeps the digits for large x2; at x2 = 0 the exponent is -inf and the factor 1.
    # The sign of a negative zero would turn that into an overflow, so it is dropped.
    return -np.expm1(-0.5 / np.where(x2 == 0.0, 0.0, x2))


def _cubic(x1: FloatArray) -> FloatArray:
    return 2300.0 * x1**3 + 1900.0 * x1**2 + 2092.0 * x1 + 60.0


def _wave(columns: Columns) -> FloatArray:
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


def _borehole(columns: Columns) -> FloatArray:
    """2 pi Tu (Hu - Hl) / {ln(r/rw) [1 + 2 L Tu/(ln(r/rw) rw^2 Kw) + Tu/Tl]}."""
    rw, r, Tu, Hu, Tl, Hl, L, Kw = columns
    log_ratio = np.log(r / rw)
    leakage = 2.0 * L * Tu / (log_ratio * rw**2 * Kw)
    return 2.0 * np.pi * Tu * (Hu - Hl) / (log_ratio * (1.0 + leakage + Tu / Tl))


def _otl_circuit(columns: Columns) -> FloatArray:
    """Midpoint voltage, with Vb1 = 12 Rb2/(Rb1 + Rb2), g = beta (Rc2 + 9).

    (Vb1 + 0.74) g/(g + Rf) + 11.35 Rf/(g + Rf) + 0.74 Rf g/[(g + Rf) Rc1]
    """
    Rb1, Rb2, Rf, Rc1, Rc2, beta = columns
    base = 12.0 * Rb2 / (Rb1 + Rb2)
    gain = beta * (Rc2 + 9.0)
    return ((base + 0.74) * gain + 11.35 * Rf + 0.74 * Rf * gain / Rc1) / (gain + Rf)


def _piston(columns: Columns) -> FloatArray:
    """2 pi sqrt(M/[k + S^2 P0 V0 Ta/(T0 V^2)]).

    V = S/(2 k) [sqrt(A^2 + 4 k P0 V0 Ta/T0) - A] and A = P0 S + 19.62 M - k V0/S.
    """
    M, S, V0, k, P0, Ta, T0 = columns
    A = P0 * S + 19.62 * M - k * V0 / S
    V = S / (2.0 * k) * (np.sqrt(A**2 + 4.0 * k * P0 * V0 / T0 * Ta) - A)
    return 2.0 * np.pi * np.sqrt(M / (k + S**2 * P0 * V0 / T0 * Ta / V**2))


def _wing_weight(columns: Columns) -> FloatArray:
    """0.036 Sw^.758 Wfw^.0035 (A/cos^2 L)^.6 q^.006 t^.04 (100 tc/cos L)^-.3 (Nz Wdg)^.49 + Sw Wp.

    L is the sweep in radians, t the taper ratio.
    """
    Sw, Wfw, A, Lambda, q, taper, tc, Nz, Wdg, Wp = columns
    cosine = np.cos(np.deg2rad(Lambda))
    structure: FloatArray = 0.036 * Sw**0.758 * Wfw**0.0035 * (A / cosine**2) ** 0.6 * q**0.006
    section: FloatArray = taper**0.04 * (100.0 * tc / cosine) ** -0.3 * (Nz * Wdg) ** 0.49
    return structure * section + Sw * Wp


def _robot_arm(columns: Columns) -> FloatArray:
    """sqrt(u^2 + v^2), (u, v) = sum_i L_i (cos, sin)(theta_1 + ... + theta_i)."""
    angles = np.cumsum(columns[:4], axis=0)
    lengths = np.asarray(columns[4:])
    u = np.sum(lengths * np.cos(angles), axis=0)
    v = np.sum(lengths * np.sin(angles), axis=0)
    return np.asarray(np.hypot(u, v))


borehole = Simulator(
    name="borehole",
    inputs=(
        Input("rw", 0.05, 0.15, "m", "radius of the borehole"),
        Input("r", 100.0, 50000.0, "m", "radius of influence"),
        Input("Tu", 63070.0, 115600.0, "m^2/yr", "transmissivity of the upper aquifer"),
        Input("Hu", 990.0, 1110.0, "m", "potentiometric head of the upper aquifer"),
        Input("Tl", 63.1, 116.0, "m^2/yr", "transmissivity of the lower aquifer"),
        Input("Hl", 700.0, 820.0, "m", "potentiometric head of the lower aquifer"),
        Input("L", 1120.0, 1680.0, "m", "length of the borehole"),
        Input("Kw", 9855.0, 12045.0, "m/yr", "hydraulic conductivity of the borehole"),
    ),
    output=Output("flow", "m^3/yr", "flow of water through the borehole"),
    reference=(
        "Harper, W. V., Gupta, S. K. (1983). Sensitivity/uncertainty analysis of a borehole "
        "scenario comparing Latin hypercube sampling and deterministic sensitivity approaches. "
        "BMI/ONWI-516, Battelle Memorial Institute"
    ),
    formula=_borehole,
    description="Eight inputs, of which the radius rw carries most of the variance.",
)

otl_circuit = Simulator(
    name="otl_circuit",
    inputs=(
        Input("Rb1", 50.0, 150.0, "kOhm", "resistance b1"),
        Input("Rb2", 25.0, 70.0, "kOhm", "resistance b2"),
        Input("Rf", 0.5, 3.0, "kOhm", "resistance f"),
        Input("Rc1", 1.2, 2.5, "kOhm", "resistance c1"),
        Input("Rc2", 0.25, 1.2, "kOhm", "resistance c2"),
        Input("beta", 50.0, 300.0, "", "current gain"),
    ),
    output=Output("Vm", "V", "midpoint voltage"),
    reference=(
        "Ben-Ari, E. N., Steinberg, D. M. (2007). Modeling data from computer experiments: an "
        "empirical comparison of kriging with MARS and projection pursuit regression. Quality "
        "Engineering 19, 327-338"
    ),
    formula=_otl_circuit,
    description="Output transformerless push-pull circuit: smooth, nearly additive.",
)

piston = Simulator(
    name="piston",
    inputs=(
        Input("M", 30.0, 60.0, "kg", "mass of the piston"),
        Input("S", 0.005, 0.020, "m^2", "surface of the piston"),
        Input("V0", 0.002, 0.010, "m^3", "initial volume of the gas"),
        Input("k", 1000.0, 5000.0, "N/m", "spring coefficient"),
        Input("P0", 90000.0, 110000.0, "N/m^2", "atmospheric pressure"),
        Input("Ta", 290.0, 296.0, "K", "ambient temperature"),
        Input("T0", 340.0, 360.0, "K", "temperature of the filling gas"),
    ),
    output=Output("C", "s", "time of one cycle"),
    reference=(
        "Kenett, R., Zacks, S. (1998). Modern Industrial Statistics: Design and Control of "
        "Quality and Reliability. Duxbury Press"
    ),
    formula=_piston,
    description="Cycle time of a piston in a cylinder: non-linear in S, k and V0.",
)

wing_weight = Simulator(
    name="wing_weight",
    inputs=(
        Input("Sw", 150.0, 200.0, "ft^2", "wing area"),
        Input("Wfw", 220.0, 300.0, "lb", "weight of the fuel in the wing"),
        Input("A", 6.0, 10.0, "", "aspect ratio"),
        Input("Lambda", -10.0, 10.0, "deg", "quarter-chord sweep"),
        Input("q", 16.0, 45.0, "lb/ft^2", "dynamic pressure at cruise"),
        Input("taper", 0.5, 1.0, "", "taper ratio"),
        Input("tc", 0.08, 0.18, "", "aerofoil thickness to chord ratio"),
        Input("Nz", 2.5, 6.0, "", "ultimate load factor"),
        Input("Wdg", 1700.0, 2500.0, "lb", "flight design gross weight"),
        Input("Wp", 0.025, 0.08, "lb/ft^2", "paint weight"),
    ),
    output=Output("weight", "lb", "weight of the wing"),
    reference=(
        "Forrester, A., Sobester, A., Keane, A. (2008). Engineering Design via Surrogate "
        "Modelling. Wiley, section 1.3.2"
    ),
    formula=_wing_weight,
    description="Weight of a light aircraft's wing: ten inputs, some of them nearly inert.",
)

robot_arm = Simulator(
    name="robot_arm",
    inputs=(
        *(
            Input(f"theta{i}", 0.0, 2.0 * np.pi, "rad", f"angle of segment {i}")
            for i in range(1, 5)
        ),
        *(Input(f"L{i}", 0.0, 1.0, "m", f"length of segment {i}") for i in range(1, 5)),
    ),
    output=Output("distance", "m", "distance of the arm's end from its shoulder"),
    reference=(
        "An, J., Owen, A. (2001). Quasi-regression. Journal of Complexity 17, 588-607, section 4"
    ),
    formula=_robot_arm,
    description=(
        "An arm of four segments in the plane. theta1 turns the whole arm and is inert; the "
        "other angles interact strongly."
    ),
)


def _friedman(columns: Columns) -> FloatArray:
    """10 sin(pi x1 x2) + 20 (x3 - 1/2)^2 + 10 x4 + 5 x5."""
    x1, x2, x3, x4, x5 = columns
    return 10.0 * np.sin(np.pi * x1 * x2) + 20.0 * (x3 - 0.5) ** 2 + 10.0 * x4 + 5.0 * x5


def _ishigami(columns: Columns) -> FloatArray:
    """(1 + x3^4/10) sin x1 + 7 sin^2 x2."""
    x1, x2, x3 = columns
    return np.sin(x1) * (1.0 + 0.1 * x3**4) + 7.0 * np.sin(x2) ** 2


friedman = Simulator(
    name="friedman",
    inputs=tuple(Input(f"x{i}", 0.0, 1.0) for i in range(1, 6)),
    output=Output("y"),
    reference=(
        "Friedman, J. H. (1991). Multivariate adaptive regression splines. Annals of Statistics "
        "19, 1-67, section 4.3"
    ),
    formula=_friedman,
    description=(
        "An interaction, a parabola and two linear inputs: a linear input has an unbounded "
        "length scale under a linear mean."
    ),
)

ishigami = Simulator(
    name="ishigami",
    inputs=tuple(Input(f"x{i}", -np.pi, np.pi, "rad") for i in range(1, 4)),
    output=Output("y"),
    reference=(
        "Ishigami, T., Homma, T. (1990). An importance quantification technique in uncertainty "
        "analysis for computer models. First International Symposium on Uncertainty Modeling "
        "and Analysis, 398-403"
    ),
    formula=_ishigami,
    description=(
        "a = 7, b = 1/10: mean 7/2; x3 acts through x1 alone, so its first-order index is zero "
        "and its total one is not."
    ),
)

#: All of them, the paper's first.
SIMULATORS = (
    branin,
    branin_printed,
    branin_standard,
    two_d_model,
    two_d_model_cited,
    wave,
    borehole,
    otl_circuit,
    piston,
    friedman,
    wing_weight,
    ishigami,
    robot_arm,
)
