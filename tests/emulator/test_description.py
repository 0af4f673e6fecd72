"""The facts about an emulator, and their words."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import paims
from paims.emulator._description import (
    Provenance,
    emulator_facts,
    facts_in_words,
    feature_names,
    kernels_in_words,
    nugget_in_words,
)


def test_facts_are_those_of_the_emulator(
    emulator: paims.Emulator, runs: tuple[np.ndarray, np.ndarray]
) -> None:
    about = Provenance(output="flow", source="runs.csv", seconds=1.25, warnings=("look", "look"))
    facts = emulator_facts(emulator, about)
    X, _ = runs
    for column, row in zip(X.T, facts["inputs"], strict=True):
        assert row["lower"] == pytest.approx(column.min(), rel=1e-12)
        assert row["upper"] == pytest.approx(column.max(), rel=1e-12)
        assert row["varies"] is True
    assert facts["n_runs"] == len(X)
    assert facts["n_draws"] == len(emulator.draws_)
    assert facts["n_components"] == len(emulator.ensemble_.weights)
    assert [mode["mass"] for mode in facts["modes"]] == [mode.mass for mode in emulator.modes_]
    assert facts["warnings"] == ["look", *emulator.result_.warnings]
    assert json.loads(json.dumps(facts))["settings"]["nugget_prior"] == "uniform"


def test_words(emulator: paims.Emulator) -> None:
    facts = emulator_facts(emulator, Provenance(source="runs.csv", seconds=1.25))
    words = dict(facts_in_words(facts))
    assert words["File of the runs"] == "runs.csv"
    assert words["Kernel"] == "squared exponential"
    assert words["Nugget"] == "estimated (uniform prior)"
    assert words["Seed"] == "3"
    assert words["Time of the fit"] == "1.2 s"
    assert kernels_in_words(facts) == "squared exponential"
    without = dict(facts_in_words(emulator_facts(emulator, Provenance())))
    assert words.keys() - without.keys() == {"File of the runs", "Time of the fit"}
    facts["kernel_evidence"] = {"matern52": 1.0, "squared_exponential": 9.0}
    assert dict(facts_in_words(facts))["Kernels"] == (
        "squared exponential 100%; left out: matern52 (log evidence 8.0 lower)"
    )
    facts["settings"]["nugget"] = 0.0
    assert nugget_in_words(facts) == "0.0"


def test_inputs_that_never_vary_are_told(runs: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = runs
    frame = pd.DataFrame({"a": X[:, 0], "still": 4.0, "b": X[:, 1]})
    with pytest.warns(UserWarning, match="still"):
        emulator = paims.Emulator(n_samples=200, random_state=0).fit(frame, y)
    facts = emulator_facts(emulator, Provenance())
    assert feature_names(emulator) == ("a", "still", "b")
    assert [row["varies"] for row in facts["inputs"]] == [True, False, True]
    assert facts["inputs"][1]["lower"] == facts["inputs"][1]["upper"] == 4.0
    assert list(facts["modes"][0]["length_scales"]) == ["a", "b"]
