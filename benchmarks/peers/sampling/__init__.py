"""Samplers, one adapter each, all with the same interface.

`SETTINGS` names the settings from cheap to dear, `HOW` says how the density is given, and
`run(problem, setting, seed)` returns :class:`benchmarks.peers.problems.Draws`. `warm_up(problem,
setting)`, where there is one, does what is done once for a process and is not measured.
"""

NAMES = ("paims", "emcee", "dynesty", "nautilus", "pymc", "blackjax")
