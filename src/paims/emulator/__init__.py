"""The scikit-learn face: an emulator of a simulator from a handful of its runs."""

from paims.emulator.compression import Compression
from paims.emulator.duration import LongFitWarning
from paims.emulator.estimator import Emulator
from paims.emulator.fitting import FitInterrupted
from paims.emulator.mixture import Components, MixturePrediction
from paims.emulator.modes import EmulatorMode, ModeTable
from paims.emulator.storage import EmulatorFileError, load_emulator

__all__ = [
    "Components",
    "Compression",
    "Emulator",
    "EmulatorFileError",
    "EmulatorMode",
    "FitInterrupted",
    "LongFitWarning",
    "MixturePrediction",
    "ModeTable",
    "load_emulator",
]
