"""Densities and populations: the PAIMS sampler, for any density."""
