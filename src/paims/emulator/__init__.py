"""The scikit-learn face: an emulator of a simulator from a handful of its runs."""

from paims.emulator._description import Provenance, feature_names
from paims.emulator._ensemble import Compression
from paims.emulator._estimator import Emulator
from paims.emulator._execution import FitInterrupted
from paims.emulator._forecast import LongFitWarning, VeryLongFitWarning
from paims.emulator._joint_outputs import JointPrediction
from paims.emulator._mixture import Components, MixturePrediction
from paims.emulator._modes import EmulatorMode, ModeTable
from paims.emulator._storage import (
    EmulatorFileError,
    load_emulator,
    read_provenance,
    save_with_provenance,
)

__all__ = [
    "Components",
    "Compression",
    "Emulator",
    "EmulatorFileError",
    "EmulatorMode",
    "FitInterrupted",
    "JointPrediction",
    "LongFitWarning",
    "MixturePrediction",
    "ModeTable",
    "Provenance",
    "VeryLongFitWarning",
    "feature_names",
    "load_emulator",
    "read_provenance",
    "save_with_provenance",
]
