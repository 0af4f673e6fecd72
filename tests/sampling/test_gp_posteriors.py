"""The sampler on posteriors of Gaussian processes, against quadrature.

The designs are found as `paims.datasets` finds them; the truths are in `tests/data`, with the
evidence of their convergence (`tests/gp_truth.py`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import gp_truth
from tests.sampling.kit import rms

import paims
from paims.gp import Posterior

CASES = json.loads(gp_truth.PATH.read_text())["cases"]


def names(case: dict[str, Any]) -> str:
    return f"{case['design']} {case['nugget_prior']}"


def errors_of(case: dict[str, Any], n_samples: int, seeds: range) -> tuple[Any, Any, int]:
    """Nine errors of each seed, errors of the log evidence, and the largest number of evaluations.

    The errors are those of three means in units of sd, three relative sds, three tail masses.
    """
    data = gp_truth.LOADERS[case["design"]]()
    y = (data.y - data.y.mean()) / data.y.std()
    posterior = Posterior(data.X, y, nugget_prior=case["nugget_prior"])
    reference = paims.SoftUniform([-6.0, -6.0, -24.0], [10.0, 10.0, 2.0], 1.0)
    mean, sd = np.array(case["mean"]), np.array(case["sd"])
    rows, log_z, most = [], [], 0
    for seed in seeds:
        result = paims.sample(posterior, reference, n_samples, random_state=seed)
        tails = [
            result.weights[result.draws[:, i] > event["above"]].sum() - event["mass"]
            for i, event in enumerate(case["tails"])
        ]
        rows.append(np.concatenate([(result.mean - mean) / sd, result.sd / sd - 1, tails]))
        log_z.append(result.log_evidence - case["log_evidence"])
        most = max(most, result.n_evaluations)
    return np.array(rows), np.array(log_z), most


@pytest.fixture(autouse=True)
def designs(shared_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAIMS_DATA_DIR", str(shared_dir / "data"))


@pytest.mark.parametrize("case", CASES, ids=names)
def test_two_seeds(case: dict[str, Any]) -> None:
    rows, log_z, _ = errors_of(case, 1000, range(2))
    assert rms(rows) < 0.04
    assert np.max(np.abs(log_z)) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=names)
def test_sixteen_seeds(case: dict[str, Any]) -> None:
    rows, log_z, most = errors_of(case, 2000, range(16))
    assert most <= 14_000
    assert rms(rows) < 0.010
    assert abs(np.mean(log_z)) < 0.012
    assert np.std(log_z, ddof=1) < 0.012
