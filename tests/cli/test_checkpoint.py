"""``paims fit`` after an interruption."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Invoke

import paims
from paims.cli import _fit
from paims.cli._fit import Resumable
from paims.gp import Posterior

FIT = ("fit", "runs.csv", "--output", "y", "--ignore", "label", "--samples", "200")


@pytest.fixture
def interrupted(invoke: Invoke, runs: Path) -> Any:
    """A fit that is interrupted at its seventh batch; what it said."""
    calls = 0
    evaluate = Posterior.__call__

    def counting(self: Posterior, u: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 7:
            raise KeyboardInterrupt
        return evaluate(self, u)

    def call(*more: str) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Posterior, "__call__", counting)
            return invoke(*FIT, *more)

    return call


def test_the_same_command_goes_on(interrupted: Any, invoke: Invoke, tmp_path: Path) -> None:
    first = interrupted("--kernel", "matern52")
    assert first.exit_code == 130
    command = "paims fit runs.csv --output y --ignore label --kernel matern52 --samples 200"
    assert first.stderr.rstrip().endswith(f"To go on:\n  {command}")
    assert not (tmp_path / "emulator.h5").exists()
    again = invoke(*command.split()[1:])
    assert again.exit_code == 0
    assert "Going on from emulator.checkpoint.h5." in again.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["emulator.h5", "runs.csv"]
    whole = invoke(*command.split()[1:], "--save", "whole.h5")
    assert whole.exit_code == 0
    a, b = (paims.load_emulator(tmp_path / name) for name in ("emulator.h5", "whole.h5"))
    np.testing.assert_array_equal(a.draws_, b.draws_)
    np.testing.assert_array_equal(a.ensemble_.draws, b.ensemble_.draws)


def test_several_outputs_go_on(interrupted: Any, invoke: Invoke, tmp_path: Path) -> None:
    first = interrupted("--output", "x2")
    assert first.exit_code == 130
    command = "paims fit runs.csv --output y --output x2 --ignore label --samples 200"
    assert first.stderr.rstrip().endswith(f"To go on:\n  {command}")
    assert (tmp_path / "emulator.checkpoint.h5").exists()
    again = invoke(*command.split()[1:])
    assert again.exit_code == 0
    assert "Going on from emulator.checkpoint.h5." in again.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["emulator.h5", "runs.csv"]
    whole = invoke(*command.split()[1:], "--save", "whole.h5")
    assert whole.exit_code == 0
    a, b = (paims.load_emulator(tmp_path / name) for name in ("emulator.h5", "whole.h5"))
    for name in ("y", "x2"):
        np.testing.assert_array_equal(a[name].draws_, b[name].draws_)


@pytest.mark.parametrize(
    ("outputs", "left"),
    [
        (("y",), "what it has is in emulator.checkpoint.h5. To go on:\n  paims fit"),
        (("y", "x2"), "no file was written or changed."),
    ],
)
def test_workers_that_die(
    outputs: tuple[str, ...],
    left: str,
    invoke: Invoke,
    runs: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Dying(ProcessPoolExecutor):
        def submit(self, *_: Any) -> Any:  # type: ignore[override]
            future: Future[Any] = Future()
            future.set_exception(BrokenExecutor())
            return future

    monkeypatch.setattr(_fit, "processes", Dying)
    options = [word for name in outputs for word in ("--output", name)]
    result = invoke(
        "fit", "runs.csv", *options, "--ignore", "label", "--way", "separate", "--workers", 2
    )
    assert result.exit_code == 1
    assert "died" in result.stderr
    assert left in result.stderr
    assert "Call fit again" not in result.stderr


def test_a_named_checkpoint_stays(interrupted: Any, invoke: Invoke, tmp_path: Path) -> None:
    first = interrupted("--checkpoint", "mine.h5")
    assert "what it has is in mine.h5" in first.stderr
    assert "--checkpoint mine.h5" in first.stderr
    assert invoke(*FIT, "--checkpoint", "mine.h5").exit_code == 0
    assert (tmp_path / "mine.h5").exists()


def test_a_comparison_of_kernels_goes_on(interrupted: Any, invoke: Invoke, tmp_path: Path) -> None:
    first = interrupted("--kernel", "auto")
    assert first.exit_code == 130
    assert "what it has is in emulator.checkpoint.h5. To go on:" in first.stderr
    again = invoke(*FIT, "--kernel", "auto")
    assert again.exit_code == 0
    assert "Going on from emulator.checkpoint.h5." in again.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["emulator.h5", "runs.csv"]
    interrupted("--kernel", "auto", "--save", "b.h5")
    anew = invoke(*FIT, "--kernel", "matern52,matern32", "--save", "b.h5", "--force")
    assert anew.exit_code == 0, anew.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "b.h5", "emulator.h5", "runs.csv"
    ]  # fmt: skip


def test_other_settings_are_refused(interrupted: Any, invoke: Invoke, tmp_path: Path) -> None:
    interrupted()
    other = invoke(*FIT, "--kernel", "matern32")
    assert other.exit_code == 1
    assert "is of another run: " in other.stderr
    assert "kernel is 'Matern32()' here and 'SquaredExponential()' in the file" in other.stderr
    assert invoke(*FIT, "--kernel", "matern32", "--force").exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["emulator.h5", "runs.csv"]


def test_checkpoint_that_is_the_emulator(invoke: Invoke, runs: Path) -> None:
    result = invoke(*FIT, "--checkpoint", "emulator.h5")
    assert result.exit_code == 1
    assert "--checkpoint and --save must be different files" in result.stderr


def test_a_file_of_another_kind_is_never_removed(
    interrupted: Any, invoke: Invoke, tmp_path: Path
) -> None:
    assert invoke(*FIT, "--save", "emulator.checkpoint.h5").exit_code == 0
    before = (tmp_path / "emulator.checkpoint.h5").read_bytes()
    for more in ((), ("--force",)):
        result = invoke(*FIT, *more)
        assert result.exit_code == 1
        assert "is another kind of file: name one with --checkpoint" in result.stderr
    assert (tmp_path / "emulator.checkpoint.h5").read_bytes() == before
    notes = tmp_path / "b.checkpoint.kernel_notes.h5"
    notes.write_text("notes")
    number = tmp_path / "b.checkpoint.kernel1.h5"
    number.write_text("more notes")
    assert invoke(*FIT, "--save", "b.h5", "--force").exit_code == 0
    assert notes.read_text() == "notes"
    assert number.read_text() == "more notes"


def test_the_runs_are_never_replaced(invoke: Invoke, runs: Path) -> None:
    before = runs.read_bytes()
    result = invoke(*FIT, "--save", runs.name, "--force")
    assert result.exit_code == 1
    assert "is what is read from (runs.csv): name another file" in result.stderr
    assert runs.read_bytes() == before


def test_each_emulator_has_a_checkpoint_of_its_own(tmp_path: Path) -> None:
    saves = (
        "mod", "mod.h5", "mod.hdf5", "mod.H5", "mod.2024", "mod.2025", "mod.2024.h5", "mod.h5.h5",
        "mod.checkpoint", "mod.checkpoint.h5", "mod.checkpoint.hdf5", "mod.hdf5.h5", ".h5",
    )  # fmt: skip
    found = [Resumable.beside(str(tmp_path / save), None, "", False, "runs.csv") for save in saves]
    names = [resumable.path.name for resumable in found]
    assert len(set(names)) == len(saves), names
    assert names[1] == "mod.checkpoint.h5"  # As it always was: those that are there go on.
    # Nor is any the file of another's outputs or kernels, which are removed with it.
    for resumable in found:
        resumable.path.write_bytes(b"paims-checkpoint 1")
    assert [resumable.files() for resumable in found] == [[resumable.path] for resumable in found]


def test_names_that_differ_in_their_suffix_alone(
    interrupted: Any, invoke: Invoke, tmp_path: Path
) -> None:
    kernel = ("--kernel", "matern52")
    assert interrupted(*kernel, "--save", "mod.h5").exit_code == 130
    before = (tmp_path / "mod.checkpoint.h5").read_bytes()
    for save in ("mod", "mod.hdf5"):  # Of other settings, which the checkpoint would refuse.
        other = invoke(*FIT, "--kernel", "matern32", "--save", save, "--force")
        assert other.exit_code == 0, other.stderr
        assert "Going on" not in other.stderr
    assert (tmp_path / "mod.checkpoint.h5").read_bytes() == before
    again = invoke(*FIT, *kernel, "--save", "mod.h5")
    assert again.exit_code == 0
    assert "Going on from mod.checkpoint.h5." in again.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "mod", "mod.h5", "mod.hdf5", "runs.csv"
    ]  # fmt: skip


@pytest.mark.parametrize("more", [(), ("--output", "x2")], ids=["one", "several"])
def test_a_name_without_a_suffix_goes_on(
    more: tuple[str, ...], interrupted: Any, invoke: Invoke, tmp_path: Path
) -> None:
    assert interrupted(*more, "--save", "mod").exit_code == 130
    again = invoke(*FIT, *more, "--save", "mod")
    assert again.exit_code == 0, again.stderr
    assert "Going on from mod.checkpoint.hdf5." in again.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mod", "runs.csv"]


@pytest.mark.parametrize(
    "place",
    [
        "paims.cli._fit.Resumable.done",
        "paims.emulator._description.emulator_facts",
        "paims.cli._describe.print_emulator",
    ],
)
def test_an_interruption_after_the_emulator_was_saved(
    place: str, invoke: Invoke, runs: Path
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(place, interrupted)
        result = invoke(*FIT)
    assert result.exit_code == 130
    assert "finished and is saved in emulator.h5" in result.stderr
    assert invoke("info", "emulator.h5").exit_code == 0


def test_an_interruption_before_the_emulator_was_saved(
    invoke: Invoke, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    (tmp_path / "emulator.h5").write_text("older")
    monkeypatch.setattr("os.fsync", interrupted)
    monkeypatch.setattr("paims.sampling._checkpoint.Checkpoint._write", lambda self: None)
    result = invoke(*FIT, "--force")
    assert result.exit_code == 130
    assert "The fit was not finished; no file was written or changed" in result.stderr
    assert (tmp_path / "emulator.h5").read_text() == "older"


def test_an_interruption_elsewhere_claims_nothing(
    invoke: Invoke, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("paims.cli._app.read_table", interrupted)
    result = invoke(*FIT)
    assert result.exit_code == 130
    assert "A file is written whole or not at all" in result.stderr
