"""Checkpoints: a run that goes on ends as the one that was never interrupted, to the bit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests import targets
from tests.sampling.kit import Floats, reference_of

import paims
from paims.sampling import (
    CheckpointError,
    DensityError,
    SampleResult,
    Scheme,
    default_scheme,
    paper_scheme,
)
from paims.sampling import _checkpoint as checkpoint

TARGET = targets.two_gaussians(3)
BOX = reference_of(TARGET)


def assert_same(a: SampleResult, b: SampleResult) -> None:
    for name in ("draws", "weights", "log_density", "levels"):
        assert getattr(a, name).tobytes() == getattr(b, name).tobytes(), name
    for name in ("log_evidence", "log_evidence_error", "pareto_k", "n_evaluations", "n_nan",
                 "n_rejected", "island_log_evidence", "status", "source", "warnings",
                 "random_state"):  # fmt: skip
        assert repr(getattr(a, name)) == repr(getattr(b, name)), name  # NaN is NaN
    assert (a.posterior is None) == (b.posterior is None)
    if a.posterior is not None and b.posterior is not None:
        assert_same(a.posterior, b.posterior)


class Interrupting:
    """A density that is interrupted at its n-th batch, and counts what it evaluates."""

    def __init__(self, at: int | None = None, density: Any = TARGET.log_density) -> None:
        self.at, self.density, self.calls, self.n_points = at, density, 0, 0

    def __call__(self, x: Floats) -> Floats:
        self.calls += 1
        if self.calls == self.at:
            raise KeyboardInterrupt
        self.n_points += len(x)
        return self.density(x)


def sample(density: Any, path: Path | None = None, **options: Any) -> SampleResult:
    options = {"n_samples": 300, "random_state": 3, "progress": False, **options}
    return paims.sample(density, BOX, checkpoint=path, **options)


@contextmanager
def on_clock(now: list[float]) -> Iterator[None]:
    """A clock that tells the time in ``now``."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("_density", "_target", "_checkpoint", "_workers", "_run"):
            patch.setattr(f"paims.sampling.{module}.monotonic", lambda: now[0])
        yield


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.h5"


SCHEMES: list[dict[str, Any]] = [
    {},
    {"goal": "optimum"},
    {"scheme": "paper", "n_samples": 500},
    {"scheme": "paper", "goal": "optimum", "n_samples": 500},
]


@pytest.mark.filterwarnings("ignore::paims.SamplingWarning")
@pytest.mark.parametrize(
    ("options", "how"),
    [*((options, "resume") for options in SCHEMES), ({}, "sample")],
    ids=["default", "optimum", "paper", "paper-optimum", "same-call"],
)
def test_interrupted_at_any_batch(options: dict[str, Any], how: str, path: Path) -> None:
    whole = sample(counted := Interrupting(), **options)
    n_batches = counted.calls
    assert n_batches > 8
    for at in (1, 3, n_batches // 2, n_batches):
        path.unlink(missing_ok=True)
        first = Interrupting(at)
        if at <= 2:  # the first batch is evaluated in two calls, to measure what a point costs
            with pytest.raises(KeyboardInterrupt, match="go on with"):
                sample(first, path, **options)
        else:
            part = sample(first, path, **options)
            assert part.status.name == "interrupted"
            assert f"paims.resume({str(path)!r}, log_density)" in part.warnings[0]
        again = Interrupting()
        if how == "resume":
            ended = paims.resume(path, again, progress=False)
        else:
            ended = sample(again, path, **options)
        assert_same(whole, ended)
        # nothing is evaluated twice but the two points that the density is recognised by
        assert first.n_points + again.n_points <= counted.n_points + 2


@pytest.mark.filterwarnings("ignore::paims.SamplingWarning")
def test_interrupted_at_every_batch(path: Path) -> None:
    """A machine that fails all the time still gets there, one batch after another."""
    whole = sample(counted := Interrupting())
    for _ in range(3 * counted.calls):
        density = Interrupting(4)  # two calls recognise the density and measure what it costs
        try:
            ended = sample(density, path)
        except KeyboardInterrupt:
            continue
        if ended.status.name == "converged":
            break
    assert_same(whole, ended)


@pytest.mark.filterwarnings("ignore::paims.SamplingWarning")
def test_rounds_are_counted_from_the_beginning(path: Path) -> None:
    """They end by their number here, not by what they reach."""
    scheme = replace(default_scheme(), wanted_share=100.0, max_rounds=3)
    whole = sample(counted := Interrupting(), scheme=scheme)
    assert np.count_nonzero(whole.levels["beta"] == 1.0) == 4
    sample(Interrupting(counted.calls), path, scheme=scheme)
    assert_same(whole, sample(TARGET.log_density, path, scheme=scheme))
    assert_same(whole, paims.resume(path, TARGET.log_density))


@pytest.mark.filterwarnings("ignore::paims.SamplingWarning")
@pytest.mark.parametrize("limit", [{"max_levels": 3}, {"max_evaluations": 1500}])
def test_after_a_limit(limit: dict[str, Any], path: Path) -> None:
    part = sample(TARGET.log_density, path, **limit)
    assert part.status.name == "stopped"
    assert_same(sample(TARGET.log_density), paims.resume(path, TARGET.log_density))


@pytest.mark.filterwarnings("ignore::paims.SamplingWarning")
def test_seconds_end_a_run_inside_a_batch(path: Path) -> None:
    """The clock is the density's: every value takes a minute."""
    now = [0.0]

    def slow(x: Floats) -> Floats:
        now[0] += 60.0 * len(x)
        return TARGET.log_density(x)

    with on_clock(now):
        with pytest.raises(ValueError, match="max_seconds is over"):
            sample(slow, path, max_seconds=6000.0, checkpoint_every=600.0)
        assert now[0] <= 6000.0 + 32 * 60.0
        saved = checkpoint.read_checkpoint(path).journal.entries[0]
        assert 100 <= np.count_nonzero(saved.known) < 300
        done = paims.resume(path, slow, checkpoint_every=1e6)
    assert_same(sample(TARGET.log_density), done)


def test_a_finished_run_gives_its_result(path: Path) -> None:
    whole = sample(TARGET.log_density, path)
    before = path.read_bytes()
    again = Interrupting()
    assert_same(whole, sample(again, path))
    assert_same(whole, paims.resume(path, again))
    assert again.n_points == 4
    assert path.read_bytes() == before


def test_a_checkpoint_changes_nothing(path: Path) -> None:
    assert_same(sample(TARGET.log_density), sample(TARGET.log_density, path))


def test_no_seed_takes_that_of_the_file(path: Path) -> None:
    whole = sample(TARGET.log_density, path, random_state=None)
    assert_same(whole, sample(TARGET.log_density, path, random_state=None))
    path.unlink()
    assert_same(whole, sample(TARGET.log_density, random_state=whole.random_state))


@pytest.mark.filterwarnings("ignore::paims.SamplingWarning")
def test_likelihood_and_a_prior_of_scipy(path: Path) -> None:
    prior = paims.Product(stats.norm(0.0, 1.0), stats.norm(0.5, 2.0))

    def log_likelihood(x: Floats) -> Floats:
        return -0.5 * np.sum((x - 0.3) ** 2, axis=1) / 0.01

    def run(path: Path | None, **options: Any) -> SampleResult:
        return paims.sample(log_likelihood=log_likelihood, prior=prior, n_samples=300,
                            random_state=0, checkpoint=path, **options)  # fmt: skip

    whole = run(None)
    run(path, max_levels=3)
    with pytest.raises(CheckpointError, match=r"reference of class Product.*pass it again"):
        paims.resume(path, log_likelihood)
    other = paims.Product(stats.norm(0.0, 1.0), stats.norm(0.5, 2.1))
    with pytest.raises(CheckpointError, match="of another reference: its log density at"):
        paims.resume(path, log_likelihood, reference=other)
    assert_same(whole, paims.resume(path, log_likelihood, reference=prior))


class TestSavedByEarlierVersions:
    """A run that was begun before the code was what it is now: still ended, with the truth."""

    SCHEME = Scheme(
        n_islands=2, shrinking=True, equal_chains=True, recycle=True, max_sweeps=10,
        max_correlation=0.7, wanted_share=1.75, max_rounds=10,
    )  # fmt: skip
    SAVED = Path(__file__).parents[1] / "data" / "saved-by-0.1" / "run.h5"

    def density(self, x: Floats) -> Floats:
        left = -0.5 * np.sum((x + 0.5) ** 2, axis=1) / 0.01
        right = -0.5 * np.sum((x - 0.5) ** 2, axis=1) / 0.01
        return np.logaddexp(left + np.log(0.1), right + np.log(0.9))

    def check(self, result: SampleResult) -> None:
        assert result.status.name == "converged"
        assert len(result.levels) > 3
        assert abs(result.log_evidence - np.log(2 * np.pi * 0.01)) < 5 * result.log_evidence_error
        assert [round(mode.mass, 1) for mode in result.modes()] == [0.9, 0.1]

    @pytest.fixture
    def saved(self, path: Path) -> Path:
        path.write_bytes(self.SAVED.read_bytes())
        return path

    def test_resume(self, saved: Path) -> None:
        with pytest.warns(paims.SamplingWarning, match=r"by version 0\.1\.0 .* goes on with"):
            result = paims.resume(saved, self.density)
        self.check(result)
        self.check(paims.resume(saved, self.density))  # as it is written now

    def test_the_same_call(self, saved: Path) -> None:
        # The defaults have changed since: with those of today it is another run.
        box = paims.Uniform([-2.0, -2.0], [2.0, 2.0])
        options = {"n_samples": 200, "random_state": 0, "checkpoint": saved}
        with (
            pytest.warns(paims.SamplingWarning, match="goes on with"),
            pytest.raises(CheckpointError, match=r"scheme wanted_share is 2\.25 here and 1\.75"),
        ):
            paims.sample(self.density, box, **options)
        with pytest.warns(paims.SamplingWarning, match="goes on with"):
            result = paims.sample(self.density, box, scheme=self.SCHEME, **options)
        self.check(result)

    def test_schemes_with_the_former_name_of_a_value(self) -> None:
        scheme = default_scheme()
        values = {**asdict(scheme), "forgotten": scheme.max_correlation}
        del values["max_correlation"]
        assert Scheme.from_stored(values) == scheme
        assert Scheme.from_stored({**values, "forgotten": -1.0}).max_correlation is None


class Described:
    """A density that says what it is made of."""

    def __init__(self, **description: str) -> None:
        self.description = description

    def __call__(self, x: Floats) -> Floats:
        return TARGET.log_density(x)


class TestRefused:
    @pytest.fixture
    def begun(self, path: Path) -> Path:
        with pytest.warns(paims.SamplingWarning):
            sample(Described(data="A", kind="x"), path, max_levels=2)
        return path

    @pytest.mark.parametrize(
        ("options", "text"),
        [
            ({"n_samples": 400}, "n_samples is 400 here and 300 in the file"),
            ({"random_state": 4}, "random_state is 4 here and 3 in the file"),
            ({"goal": "optimum"}, "goal is 'optimum' here and 'posterior' in the file"),
            ({"scheme": paper_scheme()}, "scheme n_islands is 1 here and 2 in the file"),
            ({"names": ["a", "b", "c"]}, r"names is \['a', 'b', 'c'\] here"),
        ],
    )
    def test_other_settings(self, begun: Path, options: dict[str, Any], text: str) -> None:
        with pytest.raises(CheckpointError, match=f"of another run: .*{text}"):
            sample(Described(data="A", kind="x"), begun, **options)

    def test_other_reference(self, begun: Path) -> None:
        box = paims.Uniform([-3.0] * 3, [3.0] * 3)
        with pytest.raises(CheckpointError, match="reference arguments lower is"):
            paims.sample(Described(data="A", kind="x"), box, 300, random_state=3, checkpoint=begun)

    def test_other_data(self, begun: Path) -> None:
        with pytest.raises(CheckpointError, match="density data is 'B' here and 'A' in the file"):
            sample(Described(data="B", kind="x"), begun)

    def test_other_density(self, begun: Path) -> None:
        density = Described(data="A", kind="x")
        with pytest.raises(CheckpointError, match=r"another density: at .* in the file"):
            paims.resume(begun, lambda x: density(x) + 0.01)

    def test_other_density_in_the_first_level(self, path: Path) -> None:
        now = [0.0]

        def slow(x: Floats) -> Floats:
            now[0] += 60.0 * len(x)
            return TARGET.log_density(x)

        with on_clock(now), pytest.raises(ValueError, match="max_seconds"):
            sample(slow, path, max_seconds=100.0, checkpoint_every=1.0)
        with pytest.raises(CheckpointError, match="another density"):
            paims.resume(path, lambda x: TARGET.log_density(x) + 0.01)

    def test_other_layout(self, begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("paims.sampling._checkpoint.SCHEMA", 99)
        written = rf"written by version {re.escape(paims.__version__)}.*\(schema 99\)"
        with pytest.raises(CheckpointError, match=written):
            paims.resume(begun, TARGET.log_density)

    def test_no_file(self, path: Path) -> None:
        with pytest.raises(CheckpointError, match="no checkpoint"):
            paims.resume(path, TARGET.log_density)

    @pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.999])
    def test_truncated(self, begun: Path, share: float) -> None:
        content = begun.read_bytes()
        begun.write_bytes(content[: int(share * len(content))])
        with pytest.raises(CheckpointError, match=r"cut off.*Remove the file"):
            paims.resume(begun, TARGET.log_density)
        with pytest.raises(CheckpointError, match=r"cut off.*Remove the file"):
            sample(TARGET.log_density, begun)

    def test_a_saved_emulator_is_no_checkpoint(self, path: Path) -> None:
        X = np.linspace(0.0, 3.0, 12)[:, None]
        paims.Emulator(n_samples=200, random_state=0).fit(X, np.sin(2.0 * X[:, 0])).save(path)
        with pytest.raises(CheckpointError, match="something else"):
            paims.resume(path, TARGET.log_density)


@pytest.mark.filterwarnings("ignore::paims.SamplingWarning")
def test_other_points_are_evaluated_anew(path: Path) -> None:
    """As on a machine that rounds differently: the journal is given up, the level is not."""
    sample(Interrupting(10), path)
    opened = checkpoint.read_checkpoint(path)
    assert opened.journal.entries
    opened.journal.entries[0].digest = "another"
    opened._write()
    with pytest.warns(paims.SamplingWarning, match="not the same to the bit"):
        ended = paims.resume(path, TARGET.log_density)
    assert_same(sample(TARGET.log_density), ended)


class TestDisk:
    def test_folder_that_is_not_there(self, tmp_path: Path) -> None:
        density = Interrupting()
        with pytest.raises(CheckpointError, match="cannot be written: No such file or directory"):
            sample(density, tmp_path / "nowhere" / "run.h5")
        assert density.calls == 0

    def test_folder_that_cannot_be_written(self, tmp_path: Path) -> None:
        file = tmp_path / "file"
        file.write_text("")
        density = Interrupting()
        with pytest.raises(CheckpointError, match="cannot be written: Not a directory"):
            sample(density, file / "run.h5")
        assert density.calls == 0

    def test_remains_of_killed_writers_are_removed(self, path: Path) -> None:
        remains = path.with_name(f".{path.name}.0123456789abcdef.tmp")
        other = path.with_name(".other.h5.0123456789abcdef.tmp")
        for file in (remains, other):
            file.write_bytes(b"half a file")
        sample(TARGET.log_density, path)
        assert not remains.exists()
        assert other.exists()

    def test_full_disk_does_not_end_the_run(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        whole = sample(TARGET.log_density)
        n_writes = 0
        flush = checkpoint.write_sealed.__globals__["os"].fsync

        def full(handle: int) -> None:
            nonlocal n_writes
            n_writes += 1
            if 6 < n_writes < 20:
                raise OSError(28, "No space left on device")
            flush(handle)

        monkeypatch.setattr("os.fsync", full)
        with pytest.warns(paims.SamplingWarning, match="No space left on device.*goes on") as seen:
            ended = sample(TARGET.log_density, path)
        assert len(seen) == 1
        assert_same(whole, ended)
        # the last state that could be written is whole
        monkeypatch.setattr("os.fsync", flush)
        assert_same(whole, paims.resume(path, TARGET.log_density))
        assert [item.name for item in path.parent.iterdir()] == ["run.h5"]


class TestExceptions:
    def failing(self, at: int, where: Any) -> Any:
        calls = 0

        def density(x: Floats) -> Floats:
            nonlocal calls
            calls += 1
            if calls >= at and np.any(where(x)):
                raise ZeroDivisionError("the mesh is folded")
            return TARGET.log_density(x)

        return density

    def test_the_point_is_reported_and_nothing_is_lost(self, path: Path) -> None:
        with pytest.raises(DensityError, match="ZeroDivisionError: the mesh is folded at") as seen:
            sample(self.failing(9, lambda x: x[:, 0] > 0.3), path)
        assert seen.value.points.shape == (1, 3)
        assert seen.value.points[0, 0] > 0.3
        assert 'on_error="reject"' in str(seen.value)
        assert isinstance(seen.value.__cause__, ZeroDivisionError)
        assert seen.value.result is not None
        assert len(seen.value.result.levels) > 0
        assert_same(sample(TARGET.log_density), paims.resume(path, TARGET.log_density))

    def test_a_batch_that_raises_as_a_whole(self) -> None:
        def density(x: Floats) -> Floats:
            if len(x) > 1:
                raise RuntimeError
            return TARGET.log_density(x)

        with pytest.raises(DensityError, match=r"raised RuntimeError for a batch of 2 points: "):
            sample(density)

    def test_a_density_of_single_points(self) -> None:
        def density(x: Floats) -> float:
            if x[0] > 0.3:
                raise ValueError("no")
            return float(TARGET.log_density(x[None])[0])

        with pytest.raises(DensityError, match="ValueError: no at ") as seen:
            sample(density, vectorized=False)
        assert seen.value.points[0, 0] > 0.3

    # So few points hardly cover the edge that the density is cut off at, and the run says so.
    @pytest.mark.filterwarnings("ignore:The importance weights have a heavy tail")
    @pytest.mark.parametrize("vectorized", [True, False])
    def test_reject_is_zero_density(self, vectorized: bool) -> None:
        def zero(x: Floats) -> Floats:
            return np.where(x[:, 0] > 0.3, -np.inf, TARGET.log_density(x))

        def raising(x: Floats) -> Any:
            if np.any(np.atleast_2d(x)[:, 0] > 0.3):
                raise ValueError("no")
            return TARGET.log_density(np.atleast_2d(x))[slice(None) if vectorized else 0]

        expected = sample(zero)
        with pytest.warns(paims.SamplingWarning, match="first exception was ValueError: no"):
            result = sample(raising, on_error="reject", vectorized=vectorized)
        assert result.draws.tobytes() == expected.draws.tobytes()
        assert result.log_evidence == expected.log_evidence
        assert result.n_rejected > 50
        assert np.all(result.draws[:, 0] <= 0.3)

    @pytest.mark.filterwarnings("ignore::paims.SamplingWarning")
    def test_rejected_points_are_remembered(self, path: Path) -> None:
        def raising(x: Floats) -> Floats:
            if np.any(x[:, 0] > 0.3):
                raise ValueError("no")
            return TARGET.log_density(x)

        whole = sample(raising, on_error="reject")
        sample(raising, path, on_error="reject", max_evaluations=1500)
        assert_same(whole, paims.resume(path, raising, on_error="reject"))

    def test_unknown_treatment(self) -> None:
        with pytest.raises(ValueError, match=r"on_error must be .*got 'ignore'"):
            sample(TARGET.log_density, on_error="ignore")
