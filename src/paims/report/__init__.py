"""The report: one HTML file that says what an emulator is, how good it is and what it predicts.

It needs nothing from the network, and computes predictions in the page itself.
"""

from paims.report._page import render_report
from paims.report._provenance import Provenance, read_provenance, save_with_provenance
from paims.report._study import Study, feature_names, held_out_checks, left_out, study
from paims.report._verdict import CRITERIA, Answer, Finding, answers

__all__ = [
    "CRITERIA",
    "Answer",
    "Finding",
    "Provenance",
    "Study",
    "answers",
    "feature_names",
    "held_out_checks",
    "left_out",
    "read_provenance",
    "render_report",
    "save_with_provenance",
    "study",
]
