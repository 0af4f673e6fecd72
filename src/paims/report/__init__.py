"""The report: one HTML file that says what an emulator is, how good it is and what it predicts.

It needs nothing from the network, and computes predictions in the page itself.
"""

from paims.emulator._description import Provenance, feature_names
from paims.emulator._storage import read_provenance, save_with_provenance
from paims.report._page import render_report
from paims.report._study import Study, study
from paims.report._verdict import CRITERIA, Answer, Finding, answers

__all__ = [
    "CRITERIA",
    "Answer",
    "Finding",
    "Provenance",
    "Study",
    "answers",
    "feature_names",
    "read_provenance",
    "render_report",
    "save_with_provenance",
    "study",
]
