"""Test functions whose structure is known exactly."""

from __future__ import annotations

import numpy as np

from paims.simulators._simulator import Columns, Floats, Input, Output, Simulator


def _friedman(columns: Columns) -> Floats:
    """10 sin(pi x1 x2) + 20 (x3 - 1/2)^2 + 10 x4 + 5 x5."""
    x1, x2, x3, x4, x5 = columns
    return 10.0 * np.sin(np.pi * x1 * x2) + 20.0 * (x3 - 0.5) ** 2 + 10.0 * x4 + 5.0 * x5


def _ishigami(columns: Columns) -> Floats:
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
