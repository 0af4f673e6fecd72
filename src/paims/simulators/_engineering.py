"""Engineering models with cheap closed forms that the emulation literature is compared on."""

from __future__ import annotations

import numpy as np

from paims.simulators._simulator import Columns, Floats, Input, Output, Simulator


def _borehole(columns: Columns) -> Floats:
    """2 pi Tu (Hu - Hl) / {ln(r/rw) [1 + 2 L Tu/(ln(r/rw) rw^2 Kw) + Tu/Tl]}."""
    rw, r, Tu, Hu, Tl, Hl, L, Kw = columns
    log_ratio = np.log(r / rw)
    leakage = 2.0 * L * Tu / (log_ratio * rw**2 * Kw)
    return 2.0 * np.pi * Tu * (Hu - Hl) / (log_ratio * (1.0 + leakage + Tu / Tl))


def _otl_circuit(columns: Columns) -> Floats:
    """Midpoint voltage, with Vb1 = 12 Rb2/(Rb1 + Rb2), g = beta (Rc2 + 9).

    (Vb1 + 0.74) g/(g + Rf) + 11.35 Rf/(g + Rf) + 0.74 Rf g/[(g + Rf) Rc1]
    """
    Rb1, Rb2, Rf, Rc1, Rc2, beta = columns
    base = 12.0 * Rb2 / (Rb1 + Rb2)
    gain = beta * (Rc2 + 9.0)
    return ((base + 0.74) * gain + 11.35 * Rf + 0.74 * Rf * gain / Rc1) / (gain + Rf)


def _piston(columns: Columns) -> Floats:
    """2 pi sqrt(M/[k + S^2 P0 V0 Ta/(T0 V^2)]).

    V = S/(2 k) [sqrt(A^2 + 4 k P0 V0 Ta/T0) - A] and A = P0 S + 19.62 M - k V0/S.
    """
    M, S, V0, k, P0, Ta, T0 = columns
    A = P0 * S + 19.62 * M - k * V0 / S
    V = S / (2.0 * k) * (np.sqrt(A**2 + 4.0 * k * P0 * V0 / T0 * Ta) - A)
    return 2.0 * np.pi * np.sqrt(M / (k + S**2 * P0 * V0 / T0 * Ta / V**2))


def _wing_weight(columns: Columns) -> Floats:
    """0.036 Sw^.758 Wfw^.0035 (A/cos^2 L)^.6 q^.006 t^.04 (100 tc/cos L)^-.3 (Nz Wdg)^.49 + Sw Wp.

    L is the sweep in radians, t the taper ratio.
    """
    Sw, Wfw, A, Lambda, q, taper, tc, Nz, Wdg, Wp = columns
    cosine = np.cos(np.deg2rad(Lambda))
    structure: Floats = 0.036 * Sw**0.758 * Wfw**0.0035 * (A / cosine**2) ** 0.6 * q**0.006
    section: Floats = taper**0.04 * (100.0 * tc / cosine) ** -0.3 * (Nz * Wdg) ** 0.49
    return structure * section + Sw * Wp


def _robot_arm(columns: Columns) -> Floats:
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
