"""Priors and references as users have them: SciPy distributions alone, in lists, by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.sampling.kit import Floats

import paims
from paims.sampling._references import Product, as_reference

PRIOR = {"a": stats.norm(0.0, 1.0), "b": stats.uniform(0.0, 2.0)}


def log_likelihood(x: Floats) -> Floats:
    return -0.5 * ((x[:, 0] - 1.0) / 0.5) ** 2 + np.log(x[:, 1])


# posterior of a: N(0.8, 0.2); of b: proportional to b on (0, 2); both integrals in closed form
MEAN = np.array([0.8, 4.0 / 3.0])
SD = np.array([np.sqrt(0.2), np.sqrt(2.0 - 16.0 / 9.0)])
LOG_EVIDENCE = stats.norm.logpdf(1.0, 0.0, np.sqrt(1.25)) + 0.5 * np.log(2 * np.pi * 0.25)


class TestForms:
    def test_names_are_those_of_the_dictionary(self) -> None:
        result = paims.sample(log_likelihood=log_likelihood, prior=PRIOR, random_state=0)
        assert result.names == ("a", "b")
        assert abs(result.log_evidence - LOG_EVIDENCE) < 5 * result.log_evidence_error
        assert np.all(np.abs(result.mean - MEAN) < 5 * result.mean_error)
        assert np.all(np.abs(result.sd / SD - 1) < 0.02)

    def test_every_form_gives_the_same_draws(self) -> None:
        forms: list[Any] = [
            PRIOR, list(PRIOR.values()), tuple(PRIOR.values()), paims.Product(*PRIOR.values()),
        ]  # fmt: skip
        runs = [
            paims.sample(log_likelihood=log_likelihood, prior=form, n_samples=300, random_state=1)
            for form in forms
        ]
        for run in runs[1:]:
            np.testing.assert_array_equal(run.draws, runs[0].draws)
        assert runs[1].names == ("x1", "x2")

    def test_names_that_are_given_win(self) -> None:
        result = paims.sample(
            log_likelihood=log_likelihood, prior=PRIOR, names=["c", "d"], n_samples=300,
            random_state=1,
        )  # fmt: skip
        assert result.names == ("c", "d")

    def test_as_reference_and_step_by_step(self) -> None:
        def density(x: Floats) -> Floats:
            return log_likelihood(x) + Product(*PRIOR.values()).log_density(x)

        result = paims.sample(density, PRIOR, n_samples=500, random_state=0)
        assert abs(result.log_evidence - LOG_EVIDENCE) < 5 * result.log_evidence_error
        assert result.log_prior is None
        assert result.log_likelihood is None
        *_, last = paims.anneal(density, PRIOR, 500, random_state=0)
        assert last.state.beta == 1.0

    def test_one_distribution_is_one_parameter(self) -> None:
        reference, names = as_reference(stats.gamma(3.0), "prior")
        assert isinstance(reference, Product)
        assert (reference.n_params, names) == (1, None)

    def test_distributions_of_the_newer_kind(self) -> None:
        if not hasattr(stats, "Normal"):
            pytest.skip("this SciPy has only the older kind")
        new, old = stats.Normal(mu=1.0, sigma=2.0), stats.norm(1.0, 2.0)
        u, x = np.array([[0.1], [0.7]]), np.array([[0.0], [2.0]])
        np.testing.assert_allclose(Product(new).quantile(u), Product(old).quantile(u))
        np.testing.assert_allclose(Product(new).log_density(x), Product(old).log_density(x))

    def test_from_a_checkpoint_the_dictionary_is_passed_again(self, tmp_path: Path) -> None:
        path = tmp_path / "run.h5"
        whole = paims.sample(
            log_likelihood=log_likelihood, prior=PRIOR, n_samples=300, random_state=1,
            checkpoint=path,
        )  # fmt: skip
        again = paims.resume(path, log_likelihood, reference=PRIOR)
        np.testing.assert_array_equal(again.draws, whole.draws)
        assert again.names == ("a", "b")


class TestApart:
    def test_likelihood_and_prior_of_the_draws(self) -> None:
        result = paims.sample(
            log_likelihood=log_likelihood, prior=PRIOR, n_samples=300, random_state=1
        )
        assert result.log_prior is not None
        np.testing.assert_allclose(result.log_likelihood, log_likelihood(result.draws))
        prior = Product(*PRIOR.values()).log_density(result.draws)
        np.testing.assert_allclose(result.log_prior, prior)

    def test_of_an_optimum(self) -> None:
        result = paims.sample(
            log_likelihood=log_likelihood, prior=PRIOR, n_samples=300, random_state=1,
            goal="optimum",
        )  # fmt: skip
        np.testing.assert_allclose(result.log_likelihood, log_likelihood(result.draws))


@pytest.mark.parametrize(
    ("prior", "text"),
    [
        ({}, r"prior is empty"),
        ({"a": stats.gamma}, r"prior\['a'\] is a SciPy distribution without its parameters"),
        ({"a": 3.0}, r"prior\['a'\] must be a frozen continuous SciPy distribution.*got 3.0"),
        ([stats.norm(), stats.poisson(2.0)], r"prior\[1\] must be a frozen continuous"),
        ([stats.multivariate_normal([0, 0])], r"depend on one another need one reference"),
        (stats.gamma, r"prior is a SciPy distribution without its parameters"),
        ("normal", r"prior must have sample\(n, rng\).*dictionary by name; got 'normal'"),
        (paims.Uniform, r"prior must have sample\(n, rng\)"),
    ],
)
def test_what_cannot_be_a_prior(prior: Any, text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        paims.sample(log_likelihood=log_likelihood, prior=prior)


class TestSearch:
    @pytest.mark.parametrize(("search", "made"), [(True, True), (False, False), (0.2, True)])
    def test_can_be_left_out(self, search: Any, made: bool) -> None:
        result = paims.sample(
            log_likelihood=log_likelihood, prior=PRIOR, n_samples=300, random_state=1,
            search=search,
        )  # fmt: skip
        assert (result.search is not None) is made
        (check,) = [c for c in result.checks if c.what == "search for missed modes"]
        assert check.passed is (True if made else None)
        assert ("may have been missed") in check.outcome

    def test_a_larger_share_spends_more(self) -> None:
        spent = []
        for share in (0.02, 2.0):  # in steps of a wave of climbs
            result = paims.sample(
                log_likelihood=log_likelihood, prior=PRIOR, n_samples=1000, random_state=1,
                search=share,
            )  # fmt: skip
            assert result.search is not None
            spent.append(result.search.n_evaluations)
        assert spent[1] > 2 * spent[0]

    @pytest.mark.parametrize("search", [-0.1, np.inf, "yes"])
    def test_what_it_cannot_be(self, search: Any) -> None:
        with pytest.raises(ValueError, match="search must be True, False, or the share"):
            paims.sample(log_likelihood=log_likelihood, prior=PRIOR, search=search)

    def test_the_papers_scheme_has_none(self) -> None:
        result = paims.sample(
            log_likelihood=log_likelihood, prior=PRIOR, n_samples=300, random_state=1,
            scheme="paper",
        )  # fmt: skip
        assert result.search is None
