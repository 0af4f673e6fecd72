"""The scikit-learn face: an emulator of a simulator from a handful of its runs."""

from paims.emulator.estimator import Emulator
from paims.emulator.mixture import Components, MixturePrediction

__all__ = ["Components", "Emulator", "MixturePrediction"]
