"""Linear algebra and priors of a Gaussian process: the posterior of its hyper-parameters."""

from paims.gp._kernels import (
    Kernel,
    Matern32,
    Matern52,
    Matern72,
    PowerExponential,
    SquaredExponential,
)
from paims.gp._means import Basis, Constant, Linear, Quadratic, UserBasis, Zero
from paims.gp._nugget import (
    BetaNugget,
    EstimatedNugget,
    FixedNugget,
    Nugget,
    NuggetPrior,
    ReferenceNugget,
    SpikeSlabNugget,
    UniformNugget,
)
from paims.gp._posterior import Posterior
from paims.gp._predictive import Coefficients, Predictive
from paims.gp._priors import (
    Flat,
    JointlyRobust,
    LogLaplace,
    LogNormal,
    Prior,
    Reference,
    SciPyPrior,
)

__all__ = [
    "Basis",
    "BetaNugget",
    "Coefficients",
    "Constant",
    "EstimatedNugget",
    "FixedNugget",
    "Flat",
    "JointlyRobust",
    "Kernel",
    "Linear",
    "LogLaplace",
    "LogNormal",
    "Matern32",
    "Matern52",
    "Matern72",
    "Nugget",
    "NuggetPrior",
    "Posterior",
    "PowerExponential",
    "Predictive",
    "Prior",
    "Quadratic",
    "Reference",
    "ReferenceNugget",
    "SciPyPrior",
    "SpikeSlabNugget",
    "SquaredExponential",
    "UniformNugget",
    "UserBasis",
    "Zero",
]
