"""Emulators, one adapter each, all with the same interface.

`METHODS` maps the names in the tables to options of the adapter, and `fit(X, y, seed, **options)`
returns a function from new inputs (k, p) to :class:`benchmarks.peers.scoring.Mixture`. Inputs
come scaled to [0, 1] by the range of the runs, outputs standardised. Where a package lets one
choose, the model is ours: squared exponential with a length-scale for each input, and a linear
trend; restarts and optimiser are the package's own unless the name says otherwise.
"""

NAMES = ("paims", "scikit_learn", "pylibkriging", "smt", "openturns", "mogp", "gpmp")
OPTIONAL = ("botorch",)
