"""Figures of the diagnostics, of screening and of the sampler.

One figure per function: it takes what :mod:`paims.diagnostics` computed (or the sampler's result)
and Axes to draw on, and returns them. Without Axes a new figure is made. Matplotlib's settings are
left alone.
"""

from paims.plots import _corner, _errors, _sampling, _screening, _surfaces
from paims.plots._corner import *  # noqa: F403 - what a module exports is public
from paims.plots._errors import *  # noqa: F403
from paims.plots._sampling import *  # noqa: F403
from paims.plots._screening import *  # noqa: F403
from paims.plots._surfaces import *  # noqa: F403

__all__: list[str] = []
__all__ += _corner.__all__
__all__ += _errors.__all__
__all__ += _sampling.__all__
__all__ += _screening.__all__
__all__ += _surfaces.__all__
