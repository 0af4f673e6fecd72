"""The compiled loop: against its twin, against 60 digits where both are hard, and its promises."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from tests.gp.oracle import Oracle

from paims import gp
from paims.gp import _compiled, _twin
from paims.gp._compiled import _lanes, _large, contrasts, core_terms, prepare
from paims.gp._compiled._simd import entry, exp_expm1, load, store

POWER = 1.6
KERNELS = {name: cls() for name, cls in gp.KERNELS.items()}
KERNELS["power_exponential"] = gp.PowerExponential(POWER)
each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
SMOOTH = KERNELS["squared_exponential"]


@pytest.fixture(params=["lanes", "large"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Either way of computing, whatever the number of runs."""
    monkeypatch.setattr(
        _compiled, "_LARGE", {"lanes": (9999, 9999), "large": (0, 0)}[request.param]
    )
    return request.param


on_both = pytest.mark.usefixtures("engine")


def basis(name: str, X: np.ndarray) -> np.ndarray:
    one = np.ones((len(X), 1))
    return {
        "zero": one[:, :0],
        "constant": one,
        "linear": np.hstack([one, X]),
        # spans the constant without having it as a column, on unequal scales
        "rotated": np.hstack([one + X[:, :1], 1e6 * (one - X[:, :1]), X[:, 1:]]),
        "no constant": X,
    }[name]


def problem(n: int, p: int, mean: str = "linear", m: int = 7, seed: int = 0) -> tuple[Any, ...]:
    """X, H, y and m well-conditioned points phi, delta."""
    rng = np.random.default_rng([seed, n, p])
    X = rng.random((n, p))
    y = np.sin(5.0 * X[:, 0]) + (X**2).sum(axis=1)
    phi = np.exp(rng.uniform(-2.5, 1.5, (m, p)))
    return X, basis(mean, X), y, phi, np.exp(rng.uniform(-7.0, 0.0, m))


def run(
    data: tuple[Any, ...],
    kernel: gp.Kernel = SMOOTH,
    information: int = 2,
    n_jobs: int | None = None,
) -> np.ndarray:
    X, H, y, phi, delta = data
    return core_terms(X, H, y, kernel, phi, delta, information, n_jobs)


@entry
def exponentials(x, e, e_m1):
    for i in range(0, len(x), 4):
        a, b = exp_expm1(load(x, i))
        store(e, i, a)
        store(e_m1, i, b)


def test_exponential_is_right_to_an_ulp() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([-(10.0 ** rng.uniform(-12.0, 2.85, 1600)), rng.uniform(-708.0, 7.0, 400)])
    e, e_m1 = np.empty_like(x), np.empty_like(x)
    exponentials(x, e, e_m1)
    with mp.workdps(40):
        for truth, values in [(mp.exp, e), (mp.expm1, e_m1)]:
            exact = [truth(mp.mpf(v)) for v in x]
            ulps = [
                abs(float((mp.mpf(v) - t) / math.ulp(float(t))))
                for v, t in zip(values, exact, strict=True)
            ]
            assert max(ulps) < 1.0


def test_exponential_at_its_ends() -> None:
    x = np.array([0.0, -0.0, -745.0, -746.0, -1e4, -1e300, -np.inf, -740.0])
    e, e_m1 = np.empty_like(x), np.empty_like(x)
    exponentials(x, e, e_m1)
    assert e[:7].tolist() == [1.0, 1.0, 5e-324, 0.0, 0.0, 0.0, 0.0]
    assert e[7] == pytest.approx(math.exp(-740.0), rel=1e-2)  # gradual underflow
    assert e_m1.tolist() == [0.0, 0.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0]


@on_both
@pytest.mark.parametrize("information", [0, 1, 2])
@pytest.mark.parametrize("mean", ["zero", "constant", "linear", "rotated", "no constant"])
@each_kernel
def test_equals_twin(kernel: gp.Kernel, mean: str, information: int) -> None:
    data = problem(17, 3, mean)
    X, H, y, phi, delta = data
    expected = _twin.core_terms(X, H, y, kernel, phi, delta, information)
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(run(data, kernel, information), expected, rtol=1e-9, atol=1e-10)


# every remainder of the tiles, of the groups and strips, and more inputs or basis functions
SIZES = [(2, 1), (3, 1), (4, 1), (5, 1), (5, 3), (11, 4), (12, 2), (13, 1), (25, 2), (30, 21)]
SIZES += [(47, 2), (48, 1), (49, 1), (50, 5), (96, 1), (97, 3), (101, 5), (201, 8), (260, 1)]


@on_both
@pytest.mark.parametrize("mean", ["zero", "linear"])
@pytest.mark.parametrize(("n", "p"), SIZES)
def test_equals_twin_for_every_size(n: int, p: int, mean: str) -> None:
    if mean == "linear" and n <= p + 2:
        mean = "constant"
    data = problem(n, p, mean, m=5)
    X, H, y, phi, delta = data
    # with one degree of freedom every M_i is a multiple of the identity and I is singular
    information = 2 if n - H.shape[1] > p + 1 else 0
    kernel = KERNELS["matern52"]
    expected = _twin.core_terms(X, H, y, kernel, phi, delta, information)
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(run(data, kernel, information), expected, rtol=1e-8, atol=1e-9)


# Far from the centre: long and short lengths, tiny and dominant nuggets, and rows of the
# information matrix that are nearly parallel. Absolute errors of the logarithms, about ten times
# what is reached; the last is for log|I| with the nugget, which has the fewest digits. Whitening
# by the factor of K itself, without contrasts, misses the first by a factor of 10,000.
HARD = [
    ("squared_exponential", [9.0, 7.0], 1e-12, 5e-8, 1e-6),
    ("squared_exponential", [9.0, 7.0], 0.9, 1e-11, 1e-6),
    ("squared_exponential", [-5.5, 8.0], 1e-3, 1e-12, 1e-11),
    ("squared_exponential", [-6.5, -6.0], 1e-2, 1e-13, 1e-7),
    ("squared_exponential", [-6.5, -7.5], 0.1, 1e-12, 1e-3),
    ("matern32", [6.0, 5.0], 1e-10, 3e-8, 1e-6),
    ("matern52", [4.0, 6.0], 0.5, 1e-10, 2e-6),
    ("matern72", [4.0, 6.0], 1e-8, 5e-9, 1e-4),
    ("power_exponential", [7.0, 7.0], 1e-9, 2e-10, 5e-7),
]


@on_both
@pytest.mark.parametrize(("kernel", "log_phi", "delta", "tolerance", "with_nugget"), HARD)
def test_keeps_digits_far_out(
    kernel: str, log_phi: list[float], delta: float, tolerance: float, with_nugget: float
) -> None:
    X, H, y, _, _ = problem(9, 2)
    with mp.workdps(60):
        truth = Oracle(X, y, kernel, POWER, "linear", log_phi, delta).core_terms()
    data = (X, H, y, np.exp([log_phi]), np.array([delta]))
    found = KERNELS[kernel]
    actual = np.array([*run(data, found, 1)[0], run(data, found, 2)[0, 3]])
    expected = np.array([float(value) for value in truth.values()])
    actual[2], expected[2] = np.log([actual[2], expected[2]])
    error = np.abs(actual - expected)
    assert (error <= [tolerance] * 4 + [with_nugget]).all(), error


@on_both
@pytest.mark.parametrize("n", [6, 18, 101])
def test_result_of_a_point_does_not_depend_on_its_company(n: int) -> None:
    X, H, y, phi, delta = problem(n, 2, m=150)
    X[1] = X[0]  # with a nugget of 0, K is singular
    H[1] = H[0]
    delta[[3, 40]] = 0.0
    phi[7, 1], phi[8, 0], phi[9, 0] = np.nan, -1.0, np.inf
    whole = run((X, H, y, phi, delta), n_jobs=1)
    failed = np.isnan(whole).all(axis=1)
    assert np.flatnonzero(failed).tolist() == [3, 7, 8, 9, 40]
    assert np.isfinite(whole[~failed]).all()
    for n_jobs in (2, 3, None):
        np.testing.assert_array_equal(run((X, H, y, phi, delta), n_jobs=n_jobs), whole)
    order = np.random.default_rng(1).permutation(150)
    shuffled = run((X, H, y, phi[order], delta[order]))
    np.testing.assert_array_equal(shuffled, whole[order])
    for start, stop in [(0, 1), (3, 5), (2, 9), (40, 45), (149, 150)]:
        alone = run((X, H, y, phi[start:stop], delta[start:stop]))
        np.testing.assert_array_equal(alone, whole[start:stop])


@on_both
def test_several_callers_at_once() -> None:
    cases = [problem(n, 3, m=60) for n in (9, 20, 33, 41)]
    expected = [run(case, n_jobs=1) for case in cases]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            for actual, right in zip(pool.map(run, cases), expected, strict=True):
                np.testing.assert_array_equal(actual, right)


@on_both
def test_empty_batch() -> None:
    X, H, y, phi, delta = problem(8, 2)
    assert run((X, H, y, phi[:0], delta[:0])).shape == (0, 4)


@on_both
@pytest.mark.parametrize("delta", [-1e-9, np.nan, np.inf])
def test_nugget_out_of_range_fails_alone(delta: float) -> None:
    data = problem(8, 2)
    data[4][2] = delta
    assert np.isnan(run(data)).all(axis=1).tolist() == [False, False, True] + [False] * 4


@on_both
def test_no_nugget_has_no_row() -> None:
    X, H, y, phi, delta = problem(8, 2)
    data = X, H, y, phi, 0.0 * delta
    assert np.isfinite(run(data, KERNELS["matern32"], 1)).all()
    assert np.isnan(run(data, KERNELS["matern32"], 2)).all()


@on_both
def test_parallel_rows_of_the_information_matrix_fail() -> None:
    # one pair of runs is correlated, so all that can be known is one number, not two
    X = np.array([0.0, 0.01, 1.0, 2.0, 3.0])[:, None] * np.array([1.0, 1.5])
    phi = np.exp(np.random.default_rng(0).uniform(-10.0, -8.0, (40, 2)))
    data = X, X[:, :0], np.cos(X[:, 0]), phi, np.full(40, 0.1)
    assert np.isfinite(run(data, SMOOTH, 0)).all()
    assert np.isnan(run(data, SMOOTH, 1)).all()


@on_both
def test_equal_runs_without_nugget_fail() -> None:
    # the last pivot is 0 up to rounding, which makes it positive for half of the points
    X, H, y, phi, delta = problem(12, 2, m=200)
    X[7], H[7] = X[3], H[3]
    assert np.isnan(run((X, H, y, phi, 0.0 * delta), KERNELS["matern52"], 0)).all()


@on_both
@pytest.mark.parametrize("columns", [[1.0, 0.0], [1.0, 2.0]], ids=["zero", "parallel"])
def test_dependent_basis_fails(columns: list[float]) -> None:
    X, _, y, phi, delta = problem(8, 2)
    H = np.outer(X[:, 0], columns)
    assert contrasts(H, y) is None
    assert np.isnan(run((X, H, y, phi, delta))).all()


@on_both
@each_kernel
@pytest.mark.parametrize("phi", [5e-324, 1e-310, 1e-200, 1e-5])
def test_only_equal_runs_are_correlated_at_short_lengths(kernel: gp.Kernel, phi: float) -> None:
    X, H, y, _, _ = problem(10, 20, "zero")
    X[1] = X[0]  # distances of 0 must not become 0 times infinity
    data = X, H, y, np.full((1, 20), phi), np.array([0.5])
    log_det_K, log_det_HKH, S2, log_det_I = run(data, kernel, 0)[0]
    assert log_det_K == pytest.approx(math.log(1.5**2 - 1.0) + 8.0 * math.log(1.5), rel=1e-14)
    expected = (1.5 * (y[0] ** 2 + y[1] ** 2) - 2.0 * y[0] * y[1]) / 1.25 + (
        y[2:] ** 2
    ).sum() / 1.5
    assert pytest.approx(expected, rel=1e-14) == S2
    assert (log_det_HKH, log_det_I) == (0.0, 0.0)
    assert np.isnan(run(data, kernel, 1)).all()  # the data say nothing of phi


@on_both
@each_kernel
def test_total_correlation_has_only_the_nugget(kernel: gp.Kernel) -> None:
    X, H, y, _, _ = problem(10, 2, "constant")
    log_det_K, _, S2, _ = run((X, H, y, np.full((1, 2), 1e200), np.array([0.5])), kernel, 0)[0]
    assert log_det_K == pytest.approx(math.log(10.5) + 9.0 * math.log(0.5), rel=1e-13)
    assert pytest.approx(10.0 * y.var() / 0.5, rel=1e-13) == S2


@on_both
def test_large_nugget() -> None:
    X, H, y, phi, _ = problem(10, 2, "constant", m=1)
    log_det_K = run((X, H, y, phi, np.array([1e100])), SMOOTH, 0)[0, 0]
    assert log_det_K == pytest.approx(1000.0 * math.log(10.0), rel=1e-14)


@pytest.mark.parametrize("mean", ["constant", "linear", "rotated", "no constant"])
def test_contrasts_do_not_see_the_basis(mean: str) -> None:
    _, H, y, _, _ = problem(40, 5, mean)
    found = contrasts(H, y)
    assert found is not None
    order, A, z, log_det, shift = found
    assert sorted(order) == list(range(40))
    rest, pivots = H[order[: len(A)]], H[order[len(A) :]]
    np.testing.assert_allclose(A @ pivots, rest, rtol=1e-12, atol=1e-12 * np.abs(H).max())
    np.testing.assert_allclose(z, y[order[: len(A)]] - A @ y[order[len(A) :]], atol=1e-14)
    assert log_det == pytest.approx(2.0 * np.linalg.slogdet(pivots)[1], rel=1e-12)
    assert shift == float(mean != "no constant")
    assert np.abs(A).max() < 2.0


def test_workspace_grows_with_p_times_n_squared() -> None:
    for n, p in [(100, 5), (300, 8), (2000, 20)]:
        assert _lanes.layout(n, p, p + 1, p)[-1] < 4 * (0.5 * p + 4.5) * n * n
        assert _large.layout(n, p, p + 1, p)[-1] < (0.5 * p + 3.5) * n * n
    assert _lanes.layout(2000, 20, 21, 0)[-1] < 4 * 2.1 * 2000**2
    assert _large.layout(2000, 20, 21, 0)[-1] < 1.1 * 2000**2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.zeros(7)}, r"y \(n,\).*\(7,\)"),
        ({"phi": np.ones((3, 1))}, r"phi \(m, p\).*\(3, 1\)"),
        ({"H": np.ones((8, 8))}, "8 basis functions need more than 8 runs"),
        ({"information": 3}, "information must be 0, 1 or 2; got 3"),
    ],
)
def test_errors_say_what_came(change: dict[str, Any], message: str) -> None:
    X, H, y, phi, delta = problem(8, 2, m=3)
    arguments = {
        "X": X, "H": H, "y": y, "kernel": SMOOTH,
        "phi": phi, "delta": delta, "information": 1,
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        core_terms(**{**arguments, **change})


def test_cached_code_knows_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = tmp_path / "part.py"
    part.write_text("old")
    monkeypatch.setattr(_compiled, "_PARTS", (SimpleNamespace(__file__=str(part)),))
    old = _compiled._version()
    part.write_text("new")
    new = _compiled._version()
    assert new != old
    # what a closure holds is part of the key of Numba's cache
    for make_run in (_lanes.make_run, _large.make_run):
        cells = make_run(new).py_func.__closure__
        assert [cell.cell_contents for cell in cells] == [new]


PROCESS = """
import numpy as np
from paims.gp import SquaredExponential, _compiled
X = np.random.default_rng(0).random((9, 2))
kernel = SquaredExponential()
out = _compiled.core_terms(X, np.ones((9, 1)), X[:, 0] ** 2, kernel, X[:3] + 0.5, X[:3, 1], 2)
print(out.tobytes().hex(), len(_compiled._run.stats.cache_hits))
"""


@pytest.mark.slow
def test_code_cached_by_another_process(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (
        subprocess.run(
            [sys.executable, "-c", PROCESS], env=environment, check=True, stdout=subprocess.PIPE
        ).stdout.split()
        for _ in range(2)
    )
    assert (first[1], second[1]) == (b"0", b"1")
    assert first[0] == second[0]


@on_both
@each_kernel
def test_prepared_runs_give_the_same_bits(kernel: gp.Kernel) -> None:
    X, H, y, phi, delta = problem(12, 3)
    prepared = prepare(X, H, y, kernel)
    again = core_terms(X, H, y, kernel, phi, delta, 2, None, prepared)
    np.testing.assert_array_equal(again, run((X, H, y, phi, delta), kernel))
