"""Runs that end early, and what is shown while they go on."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import targets
from tests.sampling.kit import Floats, reference_of

import paims
from paims.sampling import _assembly, _markers, default_scheme
from paims.sampling._proposal import MarkerMixture
from paims.sampling._recycling import Recycled

TARGET = targets.two_gaussians(2)
BOX = reference_of(TARGET)


def sample(density: Any = TARGET.log_density, **options: Any) -> Any:
    return paims.sample(density, BOX, 300, random_state=0, **options)


def stopped(text: str, density: Any = TARGET.log_density, **options: Any) -> Any:
    """A run that ends early, with all its warnings, one of which has this text."""
    with pytest.warns(paims.SamplingWarning) as caught:
        result = sample(density, **options)
    assert any(text in str(warning.message) for warning in caught)
    assert tuple(str(warning.message) for warning in caught) == result.warnings
    return result


def assert_same_levels(part: Any, whole: Any) -> None:
    """What a run has done until it ended is what the whole run did; NaN is NaN."""
    first = whole.levels[: len(part.levels)]
    for name in whole.levels.dtype.names:
        np.testing.assert_array_equal(part.levels[name], first[name], err_msg=name)


class TestLimits:
    @pytest.mark.parametrize("limit", [300, 700, 1500, 1700])
    def test_evaluations_never_pass_the_limit(self, limit: int) -> None:
        seen = []

        def counting(x: Floats) -> Floats:
            seen.append(len(x))
            return TARGET.log_density(x)

        result = stopped("ended before its goal", counting, max_evaluations=limit)
        assert sum(seen) == result.n_evaluations <= limit
        assert result.status.name == "stopped"
        assert f"max_evaluations={limit}" in result.status.reason
        assert result.weights.sum() == pytest.approx(1.0)
        assert np.all(np.isfinite(result.log_density))
        assert result.modes()
        assert "stopped" in result.summary()

    def test_what_was_done_is_kept(self) -> None:
        whole = sample()
        before_one = int(whole.levels["n_evaluations"][:-1].sum()) + 300
        part = stopped("ended before its goal", max_evaluations=before_one)
        assert len(part.levels) == len(whole.levels) - 1
        assert_same_levels(part, whole)

    def test_draws_of_a_stopped_run_are_weighted_for_the_target(self) -> None:
        # near temperature 1 the weights carry the rest of the way
        whole = sample()
        at_one = int(np.argmax(whole.levels["beta"] == 1.0))
        part = stopped("at beta=0", max_levels=at_one)
        assert part.levels["beta"][-1] < 1.0
        assert abs(part.log_evidence - TARGET.log_evidence) < 0.5
        small = part.weights[TARGET.assign_modes(part.draws) == 0].sum()
        assert small == pytest.approx(0.1, abs=0.1)

    def test_levels(self) -> None:
        result = stopped("max_levels=2 reached", max_levels=2)
        assert len(result.levels) == 2
        assert result.status.name == "stopped"

    def test_seconds(self) -> None:
        def slow(x: Floats) -> Floats:
            time.sleep(0.1)
            return TARGET.log_density(x)

        start = time.monotonic()
        result = stopped("max_seconds is over", slow, max_seconds=0.35)
        assert time.monotonic() - start < 5.0
        assert result.status.name == "stopped"
        assert result.n_evaluations >= 300

    def test_generous_limits_change_nothing(self) -> None:
        plain, limited = sample(), sample(max_evaluations=10**6, max_seconds=1e4, max_levels=400)
        np.testing.assert_array_equal(plain.draws, limited.draws)
        assert limited.status.name == "converged"

    def test_optimum_that_stops_early_keeps_its_posterior(self) -> None:
        result = stopped("ended before its goal", goal="optimum", max_levels=2)
        assert result.posterior is not None
        assert result.posterior.goal == "posterior"


class TestRounds:
    """Rounds at temperature 1 end when the recycled sample is large enough and reliable."""

    SCHEME = replace(default_scheme(), wanted_share=1e-3, max_rounds=2)

    def n_rounds(self) -> int:
        return int(np.count_nonzero(sample(scheme=self.SCHEME).levels["beta"] == 1.0)) - 1

    def test_large_and_reliable(self) -> None:
        assert self.n_rounds() == 0

    def test_large_but_not_reliable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Recycled, "pareto_k", 0.71)
        with pytest.warns(paims.SamplingWarning, match=r"not reliable \(Pareto k = 0\.71"):
            assert self.n_rounds() == 2

    def test_reliable_but_with_a_heavy_tail(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Recycled, "pareto_k", 0.61)
        with pytest.warns(paims.SamplingWarning, match=r"heavy tail \(Pareto k = 0\.61"):
            assert self.n_rounds() == 2

    def test_reliable_but_of_two_minds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Recycled, "islands_agree", False)
        assert self.n_rounds() == 2


class TestInterrupt:
    def interrupting(self, after: int) -> Any:
        calls = []

        def density(x: Floats) -> Floats:
            calls.append(len(x))
            if len(calls) == after:
                raise KeyboardInterrupt
            return TARGET.log_density(x)

        return density

    def test_gives_what_there_is(self) -> None:
        result = stopped("interrupted from the keyboard", self.interrupting(after=6))
        assert result.status.name == "interrupted"
        whole = sample()
        n = len(result.levels)
        assert 0 < n < len(whole.levels)
        assert_same_levels(result, whole)
        assert np.all(np.isfinite(result.draws))

    def test_after_the_reference_alone(self) -> None:
        result = stopped("interrupted from the keyboard", self.interrupting(after=2))
        assert len(result.levels) == 0
        assert result.status.name == "interrupted"
        assert result.weights.sum() == pytest.approx(1.0)
        assert abs(result.log_evidence - TARGET.log_evidence) < 3.0

    def test_before_there_is_anything(self) -> None:
        with pytest.raises(KeyboardInterrupt):
            sample(self.interrupting(after=1))

    def test_a_real_signal(self) -> None:
        calls = []

        def density(x: Floats) -> Floats:
            calls.append(len(x))
            if len(calls) == 6:
                os.kill(os.getpid(), signal.SIGINT)
            return TARGET.log_density(x)

        # a process that was started in the background ignores the signal
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            result = stopped("interrupted from the keyboard", density)
        finally:
            signal.signal(signal.SIGINT, before)
        assert result.status.name == "interrupted"


class TestBetweenEvaluations:
    """Signals that fall into the sampler's own work wait until it is done: nothing is lost."""

    @pytest.fixture(autouse=True)
    def default_handlers(self) -> Iterator[None]:
        # a process that was started in the background ignores SIGINT
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        signal.signal(signal.SIGINT, before)

    def signalling(
        self, owner: Any, name: str, at: int, number: int, patch: pytest.MonkeyPatch
    ) -> list[int]:
        """Let a function send a signal to this process, and then do its work."""
        calls: list[int] = []
        right = getattr(owner, name)

        def wrapped(*arguments: Any, **options: Any) -> Any:
            calls.append(len(calls) + 1)
            if calls[-1] == at:
                os.kill(os.getpid(), number)
            return right(*arguments, **options)

        patch.setattr(owner, name, wrapped)
        return calls

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    @pytest.mark.parametrize("at", [1, 2, 5])
    def test_in_the_recycling(
        self, at: int, number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        scheme = replace(default_scheme(), wanted_share=100.0, max_rounds=3)
        whole = sample(scheme=scheme)
        calls = self.signalling(MarkerMixture, "find_markers", at, number, monkeypatch)
        path = tmp_path / "run.h5"
        result = stopped("ended before its goal", scheme=scheme, checkpoint=path)
        assert len(calls) >= at
        assert result.status.name == "interrupted"
        n = len(result.levels)
        assert 0 < n < len(whole.levels)
        assert_same_levels(result, whole)
        # what there was before is there in the end, and as good as it was
        shorter = stopped("max_levels", scheme=scheme, max_levels=n)
        np.testing.assert_array_equal(result.draws, shorter.draws)
        np.testing.assert_array_equal(result.weights, shorter.weights)
        assert result.log_evidence == shorter.log_evidence
        resumed = paims.resume(path, TARGET.log_density)
        np.testing.assert_array_equal(resumed.weights, whole.weights)

    def test_in_a_level(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.signalling(_markers, "fit_clusters", 4, signal.SIGINT, monkeypatch)
        result = stopped("interrupted from the keyboard")
        assert result.levels["level"].tolist() == [1]

    def test_while_the_result_is_made(self, monkeypatch: pytest.MonkeyPatch) -> None:
        whole = sample()
        self.signalling(_assembly, "level_table", 1, signal.SIGINT, monkeypatch)
        result = sample()
        assert str(result.status) == "interrupted: interrupted from the keyboard"
        np.testing.assert_array_equal(result.weights, whole.weights)


class TestTermination:
    def terminating(self, after: int) -> Any:
        calls = []

        def density(x: Floats) -> Floats:
            calls.append(len(x))
            if len(calls) == after:
                os.kill(os.getpid(), signal.SIGTERM)
            return TARGET.log_density(x)

        return density

    def test_gives_what_there_is(self) -> None:
        before = signal.getsignal(signal.SIGTERM)
        result = stopped("terminated by a signal", self.terminating(after=6))
        assert result.status.name == "interrupted"
        whole = sample()
        assert_same_levels(result, whole)
        assert signal.getsignal(signal.SIGTERM) is before

    def test_a_program_that_handles_the_signal_goes_on_handling_it(self) -> None:
        seen = []
        before = signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
        try:
            result = sample(self.terminating(after=6))
        finally:
            signal.signal(signal.SIGTERM, before)
        assert seen == [signal.SIGTERM]
        assert result.status.name == "converged"

    def test_other_threads_leave_signals_alone(self) -> None:
        with ThreadPoolExecutor(1) as threads:
            result = threads.submit(sample).result()
        assert result.status.name == "converged"


SCRIPT = """
import sys, time
import numpy as np, paims
def density(x):
    time.sleep(0.02)
    return -0.5 * np.sum((x / 0.1) ** 2, axis=1)
result = paims.sample(density, paims.Uniform([-2, -2], [2, 2]), 200, random_state=0{options})
print(result.log_evidence)
"""


class TestProgress:
    def run(self, options: str, terminal: bool) -> tuple[str, str]:
        """Output and error of a run whose standard error is, or is not, a terminal."""
        command = [sys.executable, "-W", "error", "-c", SCRIPT.format(options=options)]
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
        if not terminal:
            done = subprocess.run(
                command, capture_output=True, text=True, env=environment, check=True, timeout=120
            )
            return done.stdout, done.stderr
        main, other = pty.openpty()
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=other, text=True, env=environment
        )
        os.close(other)
        shown = b""
        while True:
            try:
                part = os.read(main, 65536)
            except OSError:  # how Linux says that the other end is closed
                break
            if not part:
                break
            shown += part
        os.close(main)
        assert process.stdout is not None
        output = process.stdout.read()
        process.stdout.close()
        assert process.wait(timeout=60) == 0
        return output, shown.decode()

    def test_nothing_off_a_terminal(self) -> None:
        output, error = self.run("", terminal=False)
        assert error == ""
        assert np.isfinite(float(output))

    def test_a_line_on_a_terminal(self) -> None:
        output, shown = self.run("", terminal=True)
        assert re.search(r"level [1-9]\d*: beta", shown)  # quick levels share one repaint
        for words in ("effective size", "accepted", "evaluations", "/s"):
            assert words in shown
        assert np.isfinite(float(output))  # standard output is the user's own

    def test_off_on_request(self) -> None:
        _, shown = self.run(", progress=False", terminal=True)
        assert shown == ""
