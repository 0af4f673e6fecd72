"""Densities and populations: the PAIMS sampler, for any density."""

from paims.sampling._checkpoint import CheckpointError
from paims.sampling._density import DensityError
from paims.sampling._modes import Mode
from paims.sampling._references import Normal, Product, Reference, SoftUniform, Uniform
from paims.sampling._result import SampleResult, SamplingWarning, Status
from paims.sampling._run import Level
from paims.sampling._sample import anneal, resume, sample
from paims.sampling._scheme import Scheme, default_scheme, paper_scheme
from paims.sampling._search import SearchInfo
from paims.sampling._summary import Check

__all__ = [
    "Check",
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
    "SearchInfo",
    "SoftUniform",
    "Status",
    "Uniform",
    "anneal",
    "default_scheme",
    "paper_scheme",
    "resume",
    "sample",
]
