"""The public test functions of UQTestFuns: ours beside the peers, and how to weigh kernels.

Run ``python -m benchmarks.functions``. The package ``uqtestfuns`` (PyPI, MIT licence) has the
functions; every one that it calls a function for metamodeling, of up to 20 inputs, is here.
"""
