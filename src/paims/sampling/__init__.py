"""Densities and populations: the PAIMS sampler, for any density."""

from paims.sampling.calls import DensityError
from paims.sampling.checkpoint import CheckpointError
from paims.sampling.modes import Mode
from paims.sampling.references import Normal, Product, Reference, SoftUniform, Uniform
from paims.sampling.result import SampleResult, SamplingWarning, Status
from paims.sampling.resuming import resume
from paims.sampling.run import Level, anneal, sample
from paims.sampling.scheme import Scheme, default_scheme, paper_scheme

__all__ = [
    "CheckpointError",
    "DensityError",
    "Level",
    "Mode",
    "Normal",
    "Product",
    "Reference",
    "SampleResult",
    "SamplingWarning",
    "Scheme",
    "SoftUniform",
    "Status",
    "Uniform",
    "anneal",
    "default_scheme",
    "paper_scheme",
    "resume",
    "sample",
]
