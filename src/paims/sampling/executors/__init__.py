"""Where the density is evaluated: in this process, or by workers of several kinds.

Each kind of worker has a small file of its own. Values are put back in the order of the points,
so draws do not depend on the choice.
"""

from paims.sampling.executors._choice import evaluating

__all__ = ["evaluating"]
