"""The experiments of the paper, run anew: figures, the table beside the paper's, and checks.

The README in this folder says which module holds which. On the command line: ``paims reproduce``.

>>> from paims import experiments
>>> sorted(experiments.NAMES)
['branin', 'nilson-kuusk', 'one-d', 'two-d-model']
"""

from importlib import import_module

from paims.experiments._outcome import FORMAT_VERSION, Check, Outcome, Row, Settings, Table

__all__ = ["FORMAT_VERSION", "NAMES", "Check", "Outcome", "Row", "Settings", "Table", "run"]

_RUNS = {
    "one-d": ("_functions", "run_one_d"),
    "branin": ("_functions", "run_branin"),
    "two-d-model": ("_functions", "run_two_d_model"),
    "nilson-kuusk": ("_nilson_kuusk", "run"),
}
#: The experiments, in the order of the paper.
NAMES = tuple(_RUNS)


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
    module, function = _RUNS[name]
    run_it = getattr(import_module(f"paims.experiments.{module}"), function)
    outcome: Outcome = run_it(Settings() if settings is None else settings)
    return outcome
