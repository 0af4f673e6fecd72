"""Ways to compute the log posterior, one file for each library.

`ENGINES` maps the names in the table to functions that take X (n, p), H (n, q), y (n,), phi (m, p)
and delta (m,), and return a function that evaluates some of the points and says how many.
"""

NAMES = ("paims", "numpy", "jax", "pylibkriging")
