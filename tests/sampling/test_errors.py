"""Every error message of the sampler, with the input that causes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.sampling.kit import Floats

import paims

BOX = paims.Uniform([-2.0, -2.0], [2.0, 2.0])


def gaussian(x: Floats) -> Floats:
    return -0.5 * np.sum(x**2, axis=1) / 0.04


class Reference:
    """A reference with parts that can be spoilt."""

    def __init__(self, draws: Any = None, density: Any = None) -> None:
        self._draws = draws or (lambda n: np.zeros((n, 2)))
        self._density = density or (lambda x: np.zeros(len(x)))

    def sample(self, n: int, rng: np.random.Generator) -> Any:
        return self._draws(n)

    def log_density(self, x: Floats) -> Any:
        return self._density(x)


DENSITY = [
    (
        lambda x: gaussian(x)[:, None],
        ValueError,
        r"shape \(200,\) for a batch of shape \(200, 2\)",
    ),
    (lambda x: gaussian(x)[:, None], ValueError, r"got shape \(200, 1\).*vectorized=False"),
    (lambda x: -1.0, ValueError, r"got shape \(\)"),
    (lambda x: gaussian(x) + 0j, TypeError, "real numbers; got dtype complex128"),
    (lambda x: ["a"] * len(x), TypeError, "real numbers; got dtype <U1"),
    (lambda x: [None] * len(x), TypeError, "real numbers; got dtype object"),
    (lambda x: np.where(x[:, 0] > 0, np.inf, 0.0), ValueError, r"\+inf at \[.*not a density"),
]


@pytest.mark.parametrize(("density", "kind", "text"), DENSITY, ids=[t for _, _, t in DENSITY])
def test_density_that_returns_something_else(density: Any, kind: Any, text: str) -> None:
    with pytest.raises(kind, match=text):
        paims.sample(density, BOX, 200, random_state=0)


def test_single_point_density_that_returns_an_array() -> None:
    with pytest.raises(ValueError, match="Return one number for a point"):
        paims.sample(lambda x: x, BOX, 200, vectorized=False, random_state=0)


def test_density_that_is_zero_almost_everywhere() -> None:
    def spike(x: Floats) -> Floats:
        return np.where(np.sum(x**2, axis=1) < 1e-4, 0.0, -np.inf)

    with pytest.raises(ValueError, match="density is zero at") as caught:
        paims.sample(spike, BOX, 200, random_state=0)
    for words in ("of the 200 points", "at least 12 with a density", "covers the density more",
                  "smooth penalty", "raise n_samples"):  # fmt: skip
        assert words in str(caught.value)


CALLS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({}, TypeError, "needs log_density and reference"),
    ({"log_density": gaussian}, TypeError, r"got .*reference=None"),
    ({"reference": BOX}, TypeError, "got log_density=None"),
    ({"log_likelihood": gaussian}, TypeError, "go together"),
    ({"prior": BOX}, TypeError, "go together"),
    ({"log_likelihood": gaussian, "prior": BOX, "reference": BOX}, TypeError, "not both"),
    ({"log_density": 3, "reference": BOX}, TypeError, "must be a function.*got 3"),
    ({"log_likelihood": 3, "prior": BOX}, TypeError, "log_likelihood must be a function"),
    ({"log_density": gaussian, "reference": 7.0}, TypeError, r"sample\(n, rng\).*got 7.0"),
    ({"log_likelihood": gaussian, "prior": "flat"}, TypeError, "prior must have.*got 'flat'"),
    ({"log_density": gaussian, "reference": paims.Uniform}, TypeError, "got <class"),
]
GOOD = {"log_density": gaussian, "reference": BOX, "n_samples": 200}
OPTIONS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"goal": "best"}, ValueError, "goal must be .*got 'best'"),
    ({"scheme": "tmcmc"}, ValueError, "scheme must be .*got 'tmcmc'"),
    ({"n_samples": 59}, ValueError, "at least 60 for 2 parameters; got 59"),
    ({"n_samples": 100.5}, ValueError, "got 100.5"),
    ({"n_samples": "many"}, ValueError, "got 'many'"),
    ({"random_state": -1}, ValueError, "must not be negative; got -1"),
    ({"random_state": 1.5}, TypeError, "random_state must be .*got 1.5"),
    ({"random_state": "seed"}, TypeError, "random_state must be .*got 'seed'"),
    ({"n_jobs": 0}, ValueError, "n_jobs must be a positive integer, -1 or None; got 0"),
]
ONLY_SAMPLE: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"names": ["a"]}, ValueError, r"each of 2 parameters; got \['a'\]"),
    ({"names": "ab"}, ValueError, "got 'ab'"),
    ({"max_evaluations": 0}, ValueError, "max_evaluations must be positive; got 0"),
    ({"max_seconds": -1.0}, ValueError, "max_seconds must be positive; got -1.0"),
    ({"max_levels": 0}, ValueError, "max_levels must be positive; got 0"),
    ({"max_evaluations": 199}, ValueError, "before its first points.*max_evaluations=199"),
    ({"max_seconds": 1e-9}, ValueError, "before its first points.*max_seconds is over"),
]


@pytest.mark.parametrize(("arguments", "kind", "text"), CALLS, ids=[t for _, _, t in CALLS])
@pytest.mark.parametrize("call", [paims.sample, paims.anneal], ids=["sample", "anneal"])
def test_incomplete_or_contradictory_calls(
    call: Any, arguments: dict[str, Any], kind: type[Exception], text: str
) -> None:
    # `anneal` has to complain at once, not at its first step
    with pytest.raises(kind, match=text):
        call(**arguments)


@pytest.mark.parametrize(("arguments", "kind", "text"), OPTIONS, ids=[t for _, _, t in OPTIONS])
@pytest.mark.parametrize("call", [paims.sample, paims.anneal], ids=["sample", "anneal"])
def test_options(call: Any, arguments: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call(**{**GOOD, **arguments})


@pytest.mark.parametrize(
    ("arguments", "kind", "text"), ONLY_SAMPLE, ids=[t for _, _, t in ONLY_SAMPLE]
)
def test_options_of_sample(arguments: dict[str, Any], kind: type[Exception], text: str) -> None:
    calls = []

    def counting(x: Floats) -> Floats:
        calls.append(len(x))
        return gaussian(x)

    with pytest.raises(kind, match=text):
        paims.sample(**{**GOOD, "log_density": counting, **arguments})
    assert not calls  # a bad option costs no evaluation


REFERENCES = [
    (Reference(draws=np.zeros), r"must return shape \(100, n_params\); got \(100,\)"),
    (Reference(draws=lambda n: np.zeros((n + 1, 2))), r"got \(101, 2\)"),
    (Reference(density=lambda x: 0.0), r"reference.log_density must return shape \(200,\)"),
    (Reference(density=lambda x: np.zeros((len(x), 1))), r"got \(200, 1\)"),
]


@pytest.mark.parametrize(("reference", "text"), REFERENCES, ids=[t for _, t in REFERENCES])
def test_references_that_return_something_else(reference: Reference, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        paims.sample(gaussian, reference, 200, random_state=0)
