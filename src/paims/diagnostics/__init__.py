"""How good is an emulator, and which inputs matter: numbers first, each with its verdict.

Predictions against held-out outputs, after Bastos & O'Hagan (2009): :func:`validate` and its
parts. Leave-one-out without refits: :func:`leave_one_out`. Which inputs matter: :func:`screen`
and its parts. Figures of all of these are in :mod:`paims.plots`.
"""

from paims.diagnostics import (
    _calibration,
    _effects,
    _joint,
    _leave_one_out,
    _prediction,
    _residuals,
    _scores,
    _screening,
    _validation,
)
from paims.diagnostics._calibration import *  # noqa: F403 - what a module exports is public
from paims.diagnostics._effects import *  # noqa: F403
from paims.diagnostics._joint import *  # noqa: F403
from paims.diagnostics._leave_one_out import *  # noqa: F403
from paims.diagnostics._prediction import *  # noqa: F403
from paims.diagnostics._residuals import *  # noqa: F403
from paims.diagnostics._scores import *  # noqa: F403
from paims.diagnostics._screening import *  # noqa: F403
from paims.diagnostics._validation import *  # noqa: F403

__all__: list[str] = []
__all__ += _calibration.__all__
__all__ += _effects.__all__
__all__ += _joint.__all__
__all__ += _leave_one_out.__all__
__all__ += _prediction.__all__
__all__ += _residuals.__all__
__all__ += _scores.__all__
__all__ += _screening.__all__
__all__ += _validation.__all__
