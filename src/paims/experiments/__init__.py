"""The experiments of the paper, run anew: figures, the table beside the paper's, and checks.

One module for each experiment; the README in this folder says which. On the command line:
``paims reproduce``.

>>> from paims import experiments
>>> sorted(experiments.NAMES)
['branin', 'nilson-kuusk', 'one-d', 'two-d-model']
"""

from importlib import import_module

from paims.experiments._outcome import FORMAT_VERSION, Check, Outcome, Row, Settings, Table

__all__ = ["FORMAT_VERSION", "NAMES", "Check", "Outcome", "Row", "Settings", "Table", "run"]

#: The experiments, in the order of the paper.
NAMES = ("one-d", "branin", "two-d-model", "nilson-kuusk")


def run(name: str, settings: Settings | None = None) -> Outcome:
    """Run an experiment.

    Parameters
    ----------
    name : str
        One of :data:`NAMES`.
    settings : Settings, optional

    Returns
    -------
    Outcome
        Its pictures write themselves with ``save(folder)``.
    """
    if name not in NAMES:
        raise ValueError(f"There is no experiment {name!r}; use one of {', '.join(NAMES)}.")
    module = import_module(f"paims.experiments.{name.replace('-', '_')}")
    outcome: Outcome = module.run(Settings() if settings is None else settings)
    return outcome
