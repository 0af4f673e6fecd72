"""Linear algebra and priors of a Gaussian process: the posterior of its hyper-parameters.

What can be asked for by name is in ``KERNELS``, ``MEANS``, ``PRIORS`` and ``NUGGET_PRIORS``,
dictionaries of names and classes.
"""

from paims.gp import _kernels, _means, _nugget, _posterior, _predictive, _priors
from paims.gp._kernels import *  # noqa: F403 - what a module exports is public
from paims.gp._means import *  # noqa: F403
from paims.gp._nugget import *  # noqa: F403
from paims.gp._posterior import *  # noqa: F403
from paims.gp._predictive import *  # noqa: F403
from paims.gp._priors import *  # noqa: F403

__all__: list[str] = []
__all__ += _kernels.__all__
__all__ += _means.__all__
__all__ += _nugget.__all__
__all__ += _posterior.__all__
__all__ += _predictive.__all__
__all__ += _priors.__all__
