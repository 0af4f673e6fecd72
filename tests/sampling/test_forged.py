"""Checkpoints with a fitting checksum and numbers that no run writes: one clear error for each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from tests.sampling.hurting import two_modes

import paims
from paims._sealed import open_sealed, put_json, write_sealed
from paims.sampling import CheckpointError
from paims.sampling._checkpoint import FORMAT

BOX = paims.Uniform([-2.0, -2.0], [2.0, 2.0])


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that stopped in the middle of a level."""
    path = tmp_path_factory.mktemp("forged") / "run.h5"
    calls = 0

    def density(x: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 13:
            raise KeyboardInterrupt
        return two_modes(x)

    with pytest.warns(paims.SamplingWarning):
        paims.sample(density, BOX, 200, random_state=3, progress=False, checkpoint=path)
    return path


def array(name: str, change: Callable[[Any], Any]) -> Callable[[h5py.File], None]:
    def forge(file: h5py.File) -> None:
        value = change(file[name][()].copy())
        del file[name]
        file.create_dataset(name, data=value)

    return forge


def record(name: str, change: Callable[[Any], None]) -> Callable[[h5py.File], None]:
    def forge(file: h5py.File) -> None:
        value = json.loads(file[name][0])
        change(value)
        del file[name]
        put_json(file, name, value)

    return forge


def first(value: float) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        array[..., :1] = value
        return array

    return change


def second_beta(value: float) -> Callable[[Any], None]:
    return lambda v: v["infos"][1].update(beta=value)


def without(*names: str) -> Callable[[h5py.File], None]:
    def forge(file: h5py.File) -> None:
        for name in names:
            array(name, lambda v: v[:0])(file)

    return forge


FORGED: dict[str, tuple[Callable[[h5py.File], None], str]] = {
    "NaN weights": (array("state/markers/weight", first(np.nan)), "markers are no probabilities"),
    "negative weights": (
        array("state/markers/weight", lambda v: -v), "markers are no probabilities"
    ),
    "shares": (array("state/clusters/share", lambda v: 2 * v), "clusters are no probabilities"),
    "factors": (array("state/clusters/chol", first(np.nan)), "factors are not finite"),
    "means": (array("state/clusters/mean", first(np.inf)), "clusters are not finite"),
    "shape of factors": (
        array("state/clusters/chol", lambda v: v[:, :1]), "factors have shape"
    ),
    "offsets": (array("state/markers/offset", lambda v: v[::-1]), "in order of their clusters"),
    "evaluations": (record("progress", lambda v: v.update(n_evaluations=-3)), "is -3, of -3"),
    "half an evaluation": (record("progress", lambda v: v.update(n_evaluations=1.5)), "is 1.5"),
    "more NaN than points": (record("progress", lambda v: v.update(n_nan=10**9)), "n_nan is 10"),
    "negative beta": (record("progress", second_beta(-0.1)), "beta is -0.1 at one"),
    "NaN beta": (record("progress", second_beta(float("nan"))), "beta is nan at one"),
    "betas out of order": (record("progress", second_beta(1e-9)), "out of order: beta falls"),
    "beta of the state": (record("state/plain", lambda v: v.update(beta=0.9876)), "do not reach"),
    "level": (record("state/plain", lambda v: v.update(level=-1)), "its level is -1"),
    "evidences": (record("state/plain", lambda v: v.update(log_z=[0.0])), "2 island"),
    "NaN evidence": (
        record("state/plain", lambda v: v.update(log_z=[float("nan"), 0.0])), "log evidences"
    ),
    "sd": (record("state/plain", lambda v: v.update(initial_sd=-1.0)), "deviation is -1.0"),
    "spread": (
        record("state/plain", lambda v: v["mixtures"][0].update(spread=0.0)), "spread of a mixture"
    ),
    "pull": (record("state/plain", lambda v: v["mixtures"][0].update(pull=3.0)), "pull of a"),
    "mixture that is not there": (
        record("state/plain", lambda v: v["batches"][-1].update(mixture=99)), "cannot be read"
    ),
    "no pool": (record("state/plain", lambda v: v.update(batches=[])), "cannot be|empty"),
    "points": (array("state/islands/theta", first(np.nan)), "points are not finite"),
    "dimension": (array("state/islands/theta", lambda v: v[:, :1]), "parameters have shape"),
    "density": (array("state/islands/log_pi", first(np.inf)), "NaN or infinite"),
    "NaN density": (array("state/pool/log_pi", first(np.nan)), "pool have log densities"),
    "reference": (array("state/pool/log_m", first(np.nan)), "pool have log densities"),
    "density of a proposal": (array("state/pool/log_q", first(np.nan)), "are not numbers"),
    "fewer rows": (array("state/pool/log_q", lambda v: v[1:]), "shape|cannot be read"),
    "kinds of values": (array("journal/known", lambda v: v + 5), "of an unknown kind"),
    "infinite value": (array("journal/values", lambda v: v * 0 + np.inf), "infinite densities"),
    "fewer values": (array("journal/values_lengths", lambda v: v - 1), "rows where"),
    "negative lengths": (array("journal/values_lengths", lambda v: -v), "rows where"),
    "no points": (
        without(*(f"state/islands/{key}" for key in ("theta", "log_pi", "log_m"))), "rows where"
    ),
    "number of points": (record("settings", lambda v: v.update(n_samples=0)), "n_samples is 0"),
    "seed": (record("settings", lambda v: v.update(random_state=-1)), "random_state is -1"),
    "a list": (record("settings", lambda v: v.clear()), "n_samples is None|cannot be read"),
}  # fmt: skip


@pytest.mark.parametrize("forgery", FORGED)
def test_forged_values_are_refused(begun: Path, tmp_path: Path, forgery: str) -> None:
    forge, message = FORGED[forgery]
    path = tmp_path / "forged.h5"

    def fill(file: h5py.File) -> None:
        with open_sealed(begun, FORMAT) as whole:
            for name in whole:
                whole.copy(name, file)
            file.attrs.update(whole.attrs)
        forge(file)

    write_sealed(path, FORMAT, fill)
    with pytest.raises(CheckpointError, match=message) as seen:
        paims.resume(path, two_modes, progress=False)
    assert "Remove the file" in str(seen.value)


def test_the_file_itself_is_fine(begun: Path, tmp_path: Path) -> None:
    path = tmp_path / "copy.h5"
    path.write_bytes(begun.read_bytes())
    assert paims.resume(path, two_modes, progress=False).status.name == "converged"
