"""Send signals to runs at random moments, go on from the checkpoints, compare the draws.

    python -m benchmarks.kills [--count 200] [--signals SIGINT SIGTERM SIGKILL]
                               [--executors none threads processes dask] [--seconds 600]
    python -m benchmarks.kills --table

Each run lives in a process of its own, of a process group of its own, until a signal ends it or it
comes to its end. Then the next process goes on with it, and is sent a signal too, until a run has
ended by itself: its draws, weights and evidence have to be those of an undisturbed run, to the
bit. Ctrl-C goes to the whole group, workers included, as a terminal sends it; SIGTERM and SIGKILL
go to the run alone, and its workers have to be gone soon after.

Kinds of runs: two modes, with a fast density, so that most signals fall into the sampler's own
steps (recycling, search, assembly, writing), or a slow one, so that they fall into batches; the
slow one with a lead; a stiff chain of 12 parameters with a lead and gradients, where Hamiltonian
moves are made on both legs; a banana, whose clusters are straightened by maps; a fit under the
reference prior, with a lead; a fit of two outputs apart, each of which a worker takes whole; and
the same by `paims fit`, with `--workers` if there are processes. All kinds get about as much time.

What was seen is appended to `benchmarks/kills.jsonl`, one line for each run; the command goes on
where it was stopped, and several may run at once with different ``--seed``.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np

import paims
from paims.emulator import _table
from paims.sampling import _checkpoint, _interruptions

RECORDS = Path(__file__).with_name("kills.jsonl")
SIGNALS = ("SIGINT", "SIGTERM", "SIGKILL")
EXECUTORS = ("none", "threads", "processes", "dask")
_PAUSE = 3e-5  # seconds of a point, in slow runs
_OUTLIVE = 60.0  # seconds that a worker may live on: a busy machine takes long to start one
_HANGS = 300.0  # seconds after which a process is taken to hang
_N_STIFF = 12
_EVERY = 0.02  # seconds between checkpoints


def density(x: np.ndarray) -> np.ndarray:
    """Log density of two modes."""
    left = -0.5 * np.sum((x + 0.5) ** 2, axis=1) / 0.02
    right = -0.5 * np.sum((x - 0.5) ** 2, axis=1) / 0.002
    return np.logaddexp(left + np.log(0.3), right + np.log(0.7))


def slow_density(x: np.ndarray) -> np.ndarray:
    """Log density of the same, which takes its time."""
    time.sleep(_PAUSE * len(x))
    return density(x)


def lead(x: np.ndarray) -> np.ndarray:
    """Log density of something like the two modes."""
    return 0.6 * density(x + 0.03)


def banana(x: np.ndarray) -> np.ndarray:
    """Log density that bends round."""
    return -0.5 * x[:, 0] ** 2 - 0.5 * (x[:, 1] - x[:, 0] ** 2) ** 2 / 0.01


def stiff(x: np.ndarray) -> np.ndarray:
    """Log density of a chain of parameters, each held to the next."""
    return stiff_gradient(x)[0]


def stiff_gradient(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same with its gradients."""
    weight, links = np.linspace(1.0, 9.0, x.shape[1]), np.diff(x, axis=1)
    gradient = -x * weight - x**3
    gradient[:, 1:] -= 600.0 * links
    gradient[:, :-1] += 600.0 * links
    value = -np.sum(0.5 * weight * x**2 + 0.25 * x**4, axis=1) - 300.0 * np.sum(links**2, axis=1)
    return value, gradient


def stiff_lead(x: np.ndarray) -> np.ndarray:
    """Log density of a wider chain beside it."""
    return 0.5 * stiff(x - 0.1)


def stiff_lead_gradient(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same with its gradients."""
    value, gradient = stiff_gradient(x - 0.1)
    return 0.5 * value, 0.5 * gradient


stiff.value_and_gradient = stiff_gradient  # type: ignore[attr-defined]
stiff_lead.value_and_gradient = stiff_lead_gradient  # type: ignore[attr-defined]

#: Runs of the sampler: density, lead, corners of the box, points.
RUNS: dict[str, tuple[str, str | None, list[float], list[float], int]] = {
    "two modes, slow": ("slow_density", None, [-3.0] * 2, [3.0] * 2, 200),
    "two modes, fast": ("density", None, [-3.0] * 2, [3.0] * 2, 200),
    "lead": ("slow_density", "lead", [-3.0] * 2, [3.0] * 2, 200),
    "lead and gradients": ("stiff", "stiff_lead", [-3.0] * _N_STIFF, [3.0] * _N_STIFF, 260),
    "maps": ("banana", None, [-8.0] * 2, [12.0] * 2, 200),
}
FITS = ("fit", "outputs apart", "paims fit")
KINDS = (*RUNS, *FITS)


def life_of(kind: str, path: Path, executor: str, address: str | None) -> str:
    """Live to the end, or until it is interrupted; say what there is then."""
    if kind == "paims fit":
        return commanded(path, executor)
    with executor_of(executor, address) as made:
        if kind in FITS:
            return fitted(kind, path, made)
        result = run(kind, str(path), made)
    if result.status.name == "converged":
        return digest(result)
    return f"{result.status.name} with {len(result.draws)} draws"


def run(kind: str, path: str | None = None, executor: Any = None) -> paims.SampleResult:
    """Run the sampler."""
    # Other processes do not know what is in a script: by the name that they can import.
    name, of_lead, lower, upper, n_samples = RUNS[kind]
    target, leader = (
        None if one is None else resolve_name(f"benchmarks.kills:{one}") for one in (name, of_lead)
    )
    options = {} if path is None else {"checkpoint": path, "checkpoint_every": _EVERY}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", paims.SamplingWarning)
        return paims.sample(
            target, paims.Uniform(lower, upper), n_samples, lead=leader,
            random_state=1 + list(RUNS).index(kind), progress=False, executor=executor, **options,
        )  # fmt: skip


def digest(result: paims.SampleResult) -> str:
    """Name of everything in a result."""
    name = hashlib.sha256(repr((result.log_evidence, result.n_evaluations)).encode())
    for array in (result.draws, result.weights, result.log_density, result.levels):
        name.update(array.tobytes())
    return name.hexdigest()


def table_of_runs(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Inputs, and two outputs."""
    x = np.linspace(0.0, 1.0, 42 if kind == "fit" else 9)[:, None]
    return x, np.column_stack(
        [np.sin(9.0 * x[:, 0]), np.exp(x[:, 0]) + 0.1 * np.cos(7.0 * x[:, 0])]
    )


def fitted(kind: str, path: Path, executor: Any) -> str:
    """Fit one output, or two apart."""
    X, Y = table_of_runs(kind)
    emulator = paims.Emulator(
        kernel="matern52", prior="reference", n_samples=60, outputs="separate", random_state=3
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        emulator.fit(
            X, Y[:, 0] if kind == "fit" else Y,
            checkpoint=path, checkpoint_every=_EVERY, executor=executor,
        )  # fmt: skip
    return digest_of_fit(emulator)


def digest_of_fit(emulator: paims.Emulator) -> str:
    """Name of what a fit has found, and of what it predicts."""
    outputs = emulator.outputs_ if hasattr(emulator, "outputs_") else [emulator]
    name = hashlib.sha256()
    for one in outputs:
        name.update(digest(one.result_).encode())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names, that the command gives the inputs
        predicted = emulator.predict(np.linspace(0.0, 1.0, 7)[:, None], return_std=True)
    for array in predicted:
        name.update(np.ascontiguousarray(array).tobytes())
    return name.hexdigest()


def commanded(path: Path, executor: str) -> str:
    """Fit two outputs on the command line; the emulator is beside the checkpoint."""
    from paims.cli._app import app  # noqa: PLC0415 - slow to import

    table, saved = path.with_name("runs.csv"), path.with_name("emulator.h5")
    if not table.exists():
        X, Y = table_of_runs("paims fit")
        rows = [",".join(map(repr, row)) for row in np.hstack([X, Y]).tolist()]
        table.write_text("\n".join(["x,a,b", *rows]))
    command = f"fit {table} --output a --output b --way separate --kernel matern52 --samples 60"
    command += f" --seed 3 --save {saved} --checkpoint {path} --json"
    words = command.split() + (["--workers", "2"] if executor == "processes" else [])
    said, told = io.StringIO(), io.StringIO()
    if not saved.exists():
        code: Any = 0
        with redirect_stderr(said), redirect_stdout(told):
            try:
                app(words)
            except SystemExit as end:
                code = end.code
        if code == 130:
            right = "is saved in" if saved.exists() else str(path)
            known = right in said.getvalue() or "was not finished" in said.getvalue()
            return "interrupted" if known else f"lost: {said.getvalue()}"
        if code:
            return f"lost: exit code {code}, {said.getvalue()}"
    return digest_of_fit(paims.load_emulator(saved))


@contextmanager
def executor_of(name: str, address: str | None) -> Iterator[Any]:
    """What a run is given as its executor."""
    if name == "dask":
        with resolve_name("distributed:Client")(address) as client:
            yield client
        return
    fork = get_context("fork")
    yield {
        "none": None,
        "threads": lambda: ThreadPoolExecutor(2),
        "processes": lambda: ProcessPoolExecutor(2, mp_context=fork),
    }[name]


def live(kind: str, path: Path, executor: str, address: str | None, tell: int) -> None:
    """Be the process of a run: say when signals are welcome, and what became of it."""
    # A shell makes what it starts in the background deaf to Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signals = _interruptions.Interruptions
    enter, leave, handle = signals.__enter__, signals.__exit__, signals._handle
    process, place, ready = os.getpid(), "", False

    def entered(self: Any) -> Any:
        nonlocal ready
        result = enter(self)
        if not ready and os.getpid() == process:
            ready = True
            os.write(tell, b"ready\n")
        return result

    def left(self: Any, *about: Any) -> None:
        # What comes later is not the run's. (To block it would leave it to the other threads.)
        if kind in RUNS:
            self._before = dict.fromkeys(self._before, signal.SIG_IGN)
        leave(self, *about)

    def handled(self: Any, number: int, frame: Any) -> None:
        nonlocal place
        place = where(frame)
        handle(self, number, frame)

    signals.__enter__, signals.__exit__ = entered, left  # type: ignore[assignment, method-assign]
    signals._handle = handled  # type: ignore[method-assign]
    try:
        answer = life_of(kind, path, executor, address)
    except KeyboardInterrupt as interruption:
        # Between the runs of a fit a signal is Python's own; the checkpoint has what was.
        known = kind in FITS or str(path) in str(interruption)
        answer = "interrupted" if known else "lost: no advice"
    except BaseException:
        answer = f"lost: {traceback.format_exc()}"
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    if not ready:  # all outputs were done before
        os.write(tell, b"ready\n")
    os.write(tell, f"{answer}\n{place}\0".encode())


def where(frame: Any) -> str:
    """In which step of the run a frame is."""
    steps = {"assemble": "assembly", "recycle": "recycling", "find_missed": "search",
             "_filled": "batch", "_write": "writing", "open_checkpoint": "reading"}  # fmt: skip
    found = "elsewhere"
    while frame is not None:
        found = steps.get(frame.f_code.co_name, found)  # the outermost
        frame = frame.f_back
    return found


class Life:
    """A process that runs, from outside."""

    def __init__(self, kind: str, path: Path, executor: str, address: str | None) -> None:
        self._read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.setsid()
                os.close(self._read)
                live(kind, path, executor, address, write)
            finally:
                os._exit(0)
        os.close(write)
        self._said, self.place = b"", ""
        self._listen(lambda: b"\n" in self._said)

    def _listen(self, enough: Any, seconds: float = _HANGS) -> bool:
        """Read until that is enough, the process has ended, or time is over."""
        end = time.monotonic() + seconds
        os.set_blocking(self._read, False)
        while not enough():
            try:
                more = os.read(self._read, 100_000)
            except BlockingIOError:
                if time.monotonic() > end:
                    return False
                time.sleep(0.001)
                continue
            if not more:
                return True
            self._said += more
        return True

    def ended(self, seconds: float) -> bool:
        """Whether it says what became of it in time, or dies."""
        return self._listen(lambda: self._said.endswith(b"\0"), seconds)

    def send(self, name: str) -> None:
        """Send a signal as it comes in practice."""
        number = getattr(signal, name)
        with suppress(ProcessLookupError):
            (os.killpg if name == "SIGINT" else os.kill)(self.pid, number)

    def answer(self) -> str:
        """What became of it, when it is gone."""
        if not self.ended(_HANGS):
            os.killpg(self.pid, signal.SIGKILL)
            self._said += b"lost: it hung"
        os.close(self._read)
        os.waitpid(self.pid, 0)
        answer, _, self.place = self._said.partition(b"\n")[2].decode().partition("\n")
        self.place = self.place.rstrip("\0")
        return answer

    def leaves_workers(self) -> bool:
        """Whether processes of its group outlive it by more than it takes to start one."""
        end = time.monotonic() + _OUTLIVE
        while time.monotonic() < end:
            try:
                os.killpg(self.pid, 0)
            except (ProcessLookupError, PermissionError):
                return False
            time.sleep(0.01)
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        return True


@cache
def usual_seconds(kind: str, executor: str, address: str | None) -> float:
    """Time of a run that nothing disturbs."""
    with tempfile.TemporaryDirectory() as folder:
        life = Life(kind, Path(folder) / "run.h5", executor, address)
        start = time.monotonic()
        life.answer()
        return time.monotonic() - start


def _readable(file: Path) -> None:
    """Raise if a file that a signal has left cannot be read."""
    if file.name == "emulator.h5":
        paims.load_emulator(file)
    elif file.name == "run.h5" and _table.FORMAT.encode() in file.read_bytes()[:64]:
        return  # The next life will read it.
    else:
        _checkpoint.read_checkpoint(file)


def one_run(
    name: str, executor: str, kind: str, expected: str, rng: Any, address: str | None
) -> dict[str, Any]:
    """Send signals to a run until it has come to its end; what was seen."""
    seconds = usual_seconds(kind, executor, address)
    seen: dict[str, Any] = {"signal": name, "executor": executor, "kind": kind, "sent": 0,
            "orphans": 0, "lost": [], "different": 0, "places": {}}  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.h5"
        for _ in range(12):
            life = Life(kind, path, executor, address)
            if life.ended(rng.uniform(0.0, seconds)):
                found = life.answer()
                break
            life.send(name)
            found = life.answer()
            if len(found) == 64:  # It came too late.
                break
            seen["sent"] += 1
            seen["places"][life.place] = seen["places"].get(life.place, 0) + 1
            seen["orphans"] += life.leaves_workers()
            silent = name == "SIGKILL" or (name == "SIGTERM" and kind in FITS)
            if found.startswith("lost") or not (found or silent):
                seen["lost"].append(found or "died without a word")
            for file in path.parent.glob("*.h5"):
                _readable(file)
        else:
            found = Life(kind, path, executor, address).answer()
        seen["different"] = int(found != expected)
        if found != expected:
            seen["lost"].append(found)
    return seen


def records() -> list[dict[str, Any]]:
    """What was seen so far."""
    if not RECORDS.exists():
        return []
    return [json.loads(line) for line in RECORDS.read_text().splitlines()]


def n_sent(name: str, executor: str) -> int:
    """Signals of a kind so far."""
    return sum(
        seen["sent"]
        for seen in records()
        if (seen["signal"], seen["executor"]) == (name, executor)
    )


def table() -> str:
    """What was seen, in Markdown."""
    lines = [
        "| signal | executor | signals | runs | other draws | lost | workers left |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for executor in EXECUTORS:
        for name in SIGNALS:
            own = [s for s in records() if (s["signal"], s["executor"]) == (name, executor)]
            if own:
                sums = [sum(seen[key] for seen in own) for key in ("sent", "different", "orphans")]
                lost = sum(len(seen["lost"]) for seen in own)
                lines.append(
                    f"| {name} | {executor} | {sums[0]} | {len(own)} | {sums[1]} | {lost} | "
                    f"{sums[2]} |"
                )
    places = Counter[str]()
    for seen in records():
        places.update(seen["places"])
    del places[""]  # of those that could not say
    total = sum(places.values())
    fell = ", ".join(f"{name} {n / total:.1%}" for name, n in places.most_common())
    of_kinds = ", ".join(
        f"{kind} {sum(seen['sent'] for seen in records() if seen['kind'] == kind)}"
        for kind in KINDS
    )
    return "\n".join(
        [*lines, "", f"By kind of run: {of_kinds}. SIGINT and SIGTERM fell into: {fell}."]
    )


@contextmanager
def cluster(wanted: bool) -> Iterator[str | None]:
    """Start a Dask cluster in processes of its own, if one is wanted; its address."""
    if not wanted:
        yield None
        return
    import subprocess  # noqa: PLC0415 - seldom needed

    resolve_name("distributed")  # so that no process of a run has to import it
    script = (
        "import sys\nfrom distributed import LocalCluster\n"
        "if __name__ == '__main__':\n"
        "    with LocalCluster(n_workers=2, threads_per_worker=1, processes=False,"
        " protocol='tcp', dashboard_address=None) as made:\n"
        "        print(made.scheduler_address, flush=True)\n        sys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.communicate("")


def main() -> None:
    """Run the benchmark, or show what it has found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--signals", nargs="+", default=list(SIGNALS), choices=SIGNALS)
    parser.add_argument("--executors", nargs="+", default=list(EXECUTORS[:3]), choices=EXECUTORS)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if not arguments.table:
        end = time.monotonic() + arguments.seconds
        rng = np.random.default_rng(arguments.seed)
        whole = {}
        for kind in [*KINDS, *KINDS]:  # the first compiles, which is not what is to be killed
            with tempfile.TemporaryDirectory() as folder:
                whole[kind] = life_of(kind, Path(folder) / "run.h5", "none", None)
        with cluster("dask" in arguments.executors) as address:
            for executor in arguments.executors:
                # Only processes are known to the command.
                kinds = KINDS if executor in ("none", "processes") else KINDS[:-1]
                share = np.array([1.0 / usual_seconds(kind, executor, address) for kind in kinds])
                for name in arguments.signals:
                    while n_sent(name, executor) < arguments.count and time.monotonic() < end:
                        kind = str(rng.choice(kinds, p=share / share.sum()))
                        seen = one_run(name, executor, kind, whole[kind], rng, address)
                        with RECORDS.open("a") as file:
                            file.write(json.dumps(seen) + "\n")
                    print(f"{executor}, {name}: {n_sent(name, executor)} signals", flush=True)
    print(table())
    sys.exit(any(seen["lost"] or seen["different"] or seen["orphans"] for seen in records()))


if __name__ == "__main__":
    main()
