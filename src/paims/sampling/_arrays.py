"""The array type of the package: shapes and kinds are in the docstrings."""

from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]
