"""Gaussian-process emulators that tell the truth about their own uncertainty."""

__version__ = "0.1.0"
