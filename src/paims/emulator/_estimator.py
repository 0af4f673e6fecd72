"""The emulator, as a scikit-learn regressor."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import (
    check_is_fitted,
    validate_data,
)

from paims._arrays import FloatArray, refuse_what_is_no_number
from paims.diagnostics import LeaveOneOut, Validation
from paims.emulator._apart import emulator_of
from paims.emulator._checks import check_choice, held_out_output
from paims.emulator._description import feature_names
from paims.emulator._ensemble import compress
from paims.emulator._execution import Execution
from paims.emulator._fit import Fit, fit_runs
from paims.emulator._joint_outputs import JointPrediction
from paims.emulator._mixture import MixturePrediction
from paims.emulator._several import (
    WAYS,
    OutputOfField,
    OutputsView,
    Several,
    predict_table,
)
from paims.emulator._table import fit_table, is_table
from paims.gp import Basis, Kernel, Nugget, NuggetPrior, Prior
from paims.inference import density
from paims.sampling import Scheme
from paims.sampling._checkpoint import whole_path


class Emulator(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    r"""Gaussian-process emulator of a simulator, with all the modes of its posterior.

    The hyper-parameters :math:`u = (\log\phi_1, \dots, \log\phi_p, z)` are not optimised but
    sampled, all modes with their masses, and predictions are the mixture over the draws (the
    paper's equations mix_mean and mix_cov). Inputs are scaled to [0, 1] by the range of the runs
    and outputs are standardised; everything that goes in or comes out is in your units, and no
    result depends on them.

    Parameters
    ----------
    kernel : str, Kernel or sequence of them
        "auto" (the squared exponential, Matern 7/2 and Matern 5/2), or one or several of your own
        choice: "squared_exponential" (the paper's), another name of ``paims.gp.KERNELS``, or an
        object of :mod:`paims.gp`. Several are averaged by their evidence, and those below 1 % are
        left out. They share the points of the sampler: three take a third longer than one to
        twice as long. With 250 runs or more "auto" takes the one kernel under which the posterior
        has the highest top.
    mean : str, callable or Basis
        Trend: "linear" (the paper's), another name of ``paims.gp.MEANS``, or a function from
        inputs ``(n, p)`` in your units to regressors ``(n, q)``.
    prior : str, Prior or SciPy distribution(s)
        Of the correlation parameters: "reference", another name of ``paims.gp.PRIORS``, or of
        your own. "auto" is the reference prior where it is affordable, with p inputs and n runs
        for p <= 10 and p n^3 <= 1e7, and beyond that "jointly_robust", an approximation of it
        made for this purpose; ``posterior_.prior`` says which. Parameters of a prior refer
        to inputs scaled to [0, 1]. One that is improper is limited to the region in which the
        sampler starts.
    nugget : "estimate", float or Nugget
        Share of the process's variance that is noise: estimated, or a fixed number. With 0 the
        emulator interpolates the runs.
    nugget_prior : str or NuggetPrior
        "spike_slab" (default: the uniform prior, and a chance of their own for tiny nuggets),
        "uniform" (the paper's; the most cautious), "beta" (Beta(1/2, 1/2), between these two) or
        "reference" (one more row of the reference prior, which has to be the ``prior``).
        ``python -m benchmarks.calibration functions`` compares them.
    goal : {"posterior", "optimum", "map"}
        What to predict with: draws of the posterior; the paper's set of nearly optimal points;
        the single best point.
    n_samples : int, optional
        Points of the sampler at each level; more are slower and more accurate. By default 800,
        or 20 for each parameter and one where that is more; 2000 with the paper's scheme; 400 in
        place of 800 for more than eight outputs of 250 runs or more. Several kernels share them,
        but none has fewer than 250 (or all of fewer).
    predictive : {"student_t", "gaussian"}
        Family of a component: exact, or the Gaussian of the same mean and variance, as in the
        paper.
    scheme : {"default", "paper"} or Scheme
        Choices of the sampler: those that measurement favours, or the paper's.
    random_state : int, RandomState, Generator or None
        The same integer gives the same emulator, to the bit, for any ``n_jobs``.
    n_jobs : int, optional
        Threads; None or -1 for all cores.
    progress : bool
        Whether to show the sampler's progress on a terminal.
    outputs : {"auto", "separate", "shared", "components"}
        How several outputs are learnt: each with hyper-parameters of its own; all with one
        correlation, and trend and variance of their own; or by principal components, for fields.
        "auto" decides by their number and by what own hyper-parameters are worth; ``why_`` says
        why.

    Attributes
    ----------
    kernel_weights_ : dict of str to float
        Posterior probability of each kernel that is kept, by name, the heaviest first.
    kernel_evidence_ : dict of str to float
        Log evidence under each kernel that was tried, if there were several. It is that under a
        prior with a known total, so that differences are log odds: the ``prior`` itself, or, in
        place of the reference prior and of your own classes, a log-normal one of the lengths.
    results_ : dict of str to SampleResult
        Of the sampler, under each kernel that is kept, in the coordinates u on scaled inputs.
    result_ : SampleResult
        The first of them.
    draws_ : structured ndarray, shape (n_draws,)
        All draws in your units: length-scales (fields ``length_scale_<input>``) and ``nugget``.
    weights_ : ndarray, shape (n_draws,)
        Of the draws.
    draw_kernels_ : ndarray of str, shape (n_draws,)
        Name of the kernel of each draw.
    modes_ : ModeTable
        The posterior's modes by falling mass: where, how much, under which kernel, and what each
        says of the inputs.
    map_ : EmulatorMode
        The point of highest posterior density of u under the heaviest kernel, climbed to from the
        highest modes.
    log_evidence_, log_evidence_error_ : float
        Log density of the outputs, in your units, under the model, with everything integrated
        out; comparable between models of the same outputs. The constants that the improper priors
        leave open are fixed so: density 1 of :math:`\beta` for scaled inputs and standardised
        outputs, :math:`1/\sigma^2` of :math:`\sigma^2`, and :math:`|I|^{1/2}` of
        :math:`\log\phi` for the reference prior. A comparison of kernels or of nugget treatments
        does not hang on the first two. With several kernels it is that of their mixture, from
        ``kernel_evidence_``.
    beta_ : structured ndarray, shape (q,)
        Trend coefficients in your units: ``name``, ``mean``, ``std``, and the quantiles 2.5 %,
        50 %, 97.5 % as ``lower``, ``median``, ``upper``.
    sigma2_ : structured ndarray, shape ()
        The same of the process's variance.
    ensemble_ : Ensemble
        The hyper-parameters that predictions are made with: a few of the draws, with weights.
    compression_ : Compression
        How far predictions with these few are from predictions with the thousand draws that
        they were chosen from.
    posterior_ : paims.gp.Posterior
        On scaled inputs and outputs, under the heaviest kernel.
    inputs_, output_ : InputScaling, OutputScaling
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If X was a data frame.
    outputs_ : sequence of Emulator
        If y was a table: the emulators of single outputs, which have the attributes above; the
        emulator itself has none of these then. ``emulator["name"]`` is one by its name.
    output_names_ : tuple of str
    way_, why_ : str
        How the outputs were learnt, and why so.
    components_ : tuple of Emulator
        Of the principal components, with ``outputs="components"``.

    Notes
    -----
    A column of X that takes one value only is left out, with a warning.

    Examples
    --------
    >>> import numpy as np, paims
    >>> X = np.linspace(0.0, 3.0, 12)[:, None]
    >>> emulator = paims.Emulator(random_state=0).fit(X, np.sin(2.0 * X[:, 0]))
    >>> mean, std = emulator.predict([[1.0]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(2.0)) < 0.01)
    True
    """

    def __init__(
        self,
        kernel: str | Kernel | Sequence[str | Kernel] = "auto",
        mean: str | Basis | Callable[[FloatArray], Any] = "linear",
        prior: str | Prior | Any = "auto",
        nugget: str | float | Nugget = "estimate",
        nugget_prior: str | NuggetPrior = "spike_slab",
        goal: str = "posterior",
        n_samples: int | None = None,
        predictive: str = "student_t",
        scheme: str | Scheme = "default",
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool = False,
        outputs: str = "auto",
    ) -> None:
        self.kernel = kernel
        self.mean = mean
        self.prior = prior
        self.nugget = nugget
        self.nugget_prior = nugget_prior
        self.goal = goal
        self.n_samples = n_samples
        self.predictive = predictive
        self.scheme = scheme
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.outputs = outputs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(
        self,
        X: Any,
        y: Any,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
        executor: Any = None,
    ) -> Emulator:
        """Learn from runs of the simulator.

        Parameters
        ----------
        X : (n, n_features) array_like or data frame
            Inputs.
        y : (n,) array_like, or (n, m) array_like or data frame
            Outputs. At least q + 3 runs are needed, q the number of basis functions of the mean.
            In a table of several outputs NaN stands where a run has none; it serves the others.
        checkpoint : str or path, optional
            File that the sampler's state is written to after each level. If it is there and is
            of these runs and settings, the fit goes on from it and ends with the same emulator,
            to the bit; a file of others is refused.
        checkpoint_every : float
            Seconds after which it is written inside a level too.
        executor : optional
            Workers to evaluate the posterior with, as in :func:`paims.sample`, in place of the
            ``n_jobs`` threads of this process. Of several outputs that are fitted apart, each
            process takes one after the other, whole; ``checkpoint`` then has those that are done.

        Returns
        -------
        Emulator
            Itself.

        Warns
        -----
        LongFitWarning
            If the fit is expected to take more than a minute: how long, and what takes less. With
            ``progress`` it is a line on standard error.

        Raises
        ------
        FitInterrupted
            On Ctrl-C or SIGTERM, a KeyboardInterrupt that says how to go on. The emulator is what
            it was before.
        """
        before = dict(vars(self))
        try:
            return self._fitted(X, y, checkpoint, checkpoint_every, executor)
        except KeyboardInterrupt:
            self.__dict__ = before  # as it was, in one step
            raise

    def _fitted(
        self,
        X: Any,
        y: Any,
        checkpoint: str | os.PathLike[str] | None,
        checkpoint_every: float,
        executor: Any,
    ) -> Emulator:
        check_choice("goal", self.goal, ("posterior", "optimum", "map"))
        check_choice("predictive", self.predictive, ("student_t", "gaussian"))
        refuse_what_is_no_number("X", X)
        refuse_what_is_no_number("y", y)
        check_choice("outputs", self.outputs, WAYS)
        table = is_table(y)
        with np.errstate(invalid="ignore"):  # its sum of huge numbers may be inf - inf
            if table:
                X, Y = validate_data(self, X, dtype=np.float64), y
            else:
                X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        execution = Execution(
            progress=self.progress,
            checkpoint=None if checkpoint is None else whole_path(checkpoint),
            checkpoint_every=checkpoint_every,
            executor=executor,
        )
        self._forget()
        if table:
            self._set_several(fit_table(self, X, Y, execution))
            return self
        y = np.asarray(y, dtype=np.float64)
        self._set_fit(fit_runs(X, y, feature_names(self), self, execution))
        execution.remove_others(len(self.kernel_evidence_))
        return self

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        include_nugget: bool = True,
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Predict the output of the simulator.

        Parameters
        ----------
        X : (k, n_features) array_like or data frame
        return_std, return_cov : bool
            Whether to return the standard deviation or the covariance matrix too.
        include_nugget : bool
            Whether these are of what a run of the simulator would return (True), which is what
            new runs should be compared with, or of its smooth part alone.

        Returns
        -------
        mean : (k,) ndarray
        std : (k,) ndarray
            If ``return_std``.
        cov : (k, k) ndarray
            If ``return_cov``. With a table of m outputs the three are (k, m), (k, m) and
            (k, k, m).
        """
        if return_std and return_cov:
            raise ValueError("Ask for one of return_std and return_cov; the latter has both.")
        if hasattr(self, "outputs_"):
            X = self._checked(X)
            return predict_table(self._several, X, return_std, return_cov, include_nugget)
        scaled = self._scaled(X)
        if return_cov:
            mixture = self.ensemble_.mixture(scaled, include_nugget=include_nugget)
            return mixture.mean, mixture.cov()
        mean, std = self.ensemble_.moments(scaled, include_nugget=include_nugget)
        if return_std:
            return self.output_.value(mean), self.output_.difference(std)
        return self.output_.value(mean)

    def predict_distribution(
        self, X: Any, include_nugget: bool = True
    ) -> MixturePrediction | JointPrediction:
        """Predict the whole distribution of the output at each input.

        Parameters
        ----------
        X : (k, n_features) array_like or data frame
        include_nugget : bool
            As in :meth:`predict`.

        Returns
        -------
        MixturePrediction
            With mean, std, cov(), quantile(q), interval(level), cdf(y), logpdf(y), sample(size),
            components and weights.
        JointPrediction
            For several outputs: with mean, std, quantile(q), interval(level), joint samples of
            shape (size, k, m), and combine(weights) for sums and means of outputs.
        """
        if hasattr(self, "outputs_"):
            return self._several.joint(self._checked(X), include_nugget)
        scaled = self._scaled(X)
        return self.ensemble_.mixture(scaled, include_nugget=include_nugget)

    def sample_y(
        self, X: Any, n_samples: int = 1, random_state: Any = 0, include_nugget: bool = True
    ) -> FloatArray:
        """Draw joint samples of the outputs at some inputs.

        Parameters
        ----------
        X : (k, n_features) array_like or data frame
        n_samples : int
        random_state : int, RandomState, Generator or None
        include_nugget : bool
            As in :meth:`predict`.

        Returns
        -------
        (k, n_samples) ndarray, or (k, m, n_samples) for m outputs
        """
        mixture = self.predict_distribution(X, include_nugget)
        samples = mixture.sample(n_samples, random_state)
        return np.ascontiguousarray(np.moveaxis(samples, 0, -1))

    def __getitem__(self, output: str | int) -> Any:
        """The emulator of one of several outputs, by its name or number."""
        check_is_fitted(self, "outputs_")
        return self.outputs_[self._several.mapping.index(output)]

    def log_posterior(self, length_scales: Any, nugget: Any = None) -> FloatArray:
        r"""Log posterior density of hyper-parameters.

        Parameters
        ----------
        length_scales : (m, p) array_like
            In the units of the inputs, for those that vary.
        nugget : (m,) array_like or float
            May be left out if it is fixed.

        Returns
        -------
        (m,) ndarray
            Log density of :math:`u = (\log\phi, z)`, the coordinates of ``result_.draws``, under
            the heaviest kernel, normalised by the estimated evidence.
        """
        self._refuse_several("log_posterior")
        check_is_fitted(self, "ensemble_")
        lengths = np.asarray(length_scales, dtype=np.float64) / self.inputs_.range
        u = self.posterior_.from_physical(
            self.posterior_.kernel.from_length_scale(lengths), nugget
        )
        return density(self.posterior_)(u) - self.result_.log_evidence

    def compress(self, n_components: int) -> Emulator:
        """Make an emulator with a smaller mixture, which predicts faster.

        Parameters
        ----------
        n_components : int
            Most components to keep.

        Returns
        -------
        Emulator
            Another one; its ``compression_`` says how far its predictions are from those of this
            one, measured over the box of the runs.
        """
        self._refuse_several("compress")
        check_is_fitted(self, "ensemble_")
        if int(n_components) != n_components or n_components < 1:
            raise ValueError(f"n_components must be a positive integer; got {n_components!r}.")
        other = copy(self)
        rng = np.random.default_rng(0)
        ensemble, compression = compress(self.ensemble_, int(n_components), rng)
        other._set_fit(replace(self._fit, ensemble=ensemble, compression=compression))
        return other

    def leave_one_out(self) -> LeaveOneOut:
        """Predict each run from all others, with the hyper-parameters as they are.

        Returns
        -------
        LeaveOneOut
            Scores and checks; ``passed`` says whether any speaks against the emulator.
        """
        self._refuse_several("leave_one_out")
        check_is_fitted(self, "ensemble_")
        return self.ensemble_.leave_one_out()

    def validate(self, X: Any, y: Any) -> Validation:
        """Compare the emulator with runs that it has not seen.

        Parameters
        ----------
        X : (k, n_features) array_like or data frame
            Inputs of the held-out runs.
        y : (k,) array_like
            Their outputs. Of more than 150 runs an even choice is taken: the joint checks of
            more would take minutes.

        Returns
        -------
        Validation
            Scores and checks; ``passed`` says whether any speaks against the emulator.
        """
        self._refuse_several("validate")
        scaled = self._scaled(X)
        return self.ensemble_.validate(scaled, held_out_output(scaled, y))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the emulator to an HDF5 file; :func:`paims.load_emulator` reads it.

        Parameters
        ----------
        path : str or path
            An existing file is replaced, whole or not at all.
        """
        check_is_fitted(self, "outputs_" if hasattr(self, "outputs_") else "ensemble_")
        # Storage knows emulators, not the other way round.
        from paims.emulator._storage import save_with_provenance  # noqa: PLC0415

        save_with_provenance(self, path)

    def _scaled(self, X: Any) -> FloatArray:
        """Checked and scaled inputs."""
        check_is_fitted(self, "ensemble_")
        X = self._checked(X)
        changed = self.inputs_.changed_constants(X)
        if changed.size:
            listed = ", ".join(feature_names(self)[i] for i in changed)
            warnings.warn(
                f"Column(s) {listed} took one value only in the runs and have others here: the "
                "emulator knows nothing of what that changes.",
                UserWarning,
                stacklevel=3,
            )
        return self.inputs_.apply(X)

    def _checked(self, X: Any) -> FloatArray:
        """Inputs ``(k, n_features)``, in the order of those of the runs."""
        refuse_what_is_no_number("X", X)
        with np.errstate(invalid="ignore"):
            checked: FloatArray = validate_data(self, X, dtype=np.float64, reset=False)
        return checked

    def _refuse_several(self, what: str) -> None:
        if hasattr(self, "outputs_"):
            raise AttributeError(
                f"{what} is for one output: call it of emulator[name], the emulator of the output "
                "of that name, or of emulator.outputs_[j]."
            )

    def _forget(self) -> None:
        """Remove what another fit, of one output or of several, has left."""
        kept = ("n_features_in_", "feature_names_in_")
        for name in [key for key in vars(self) if key.endswith("_") and key not in kept]:
            delattr(self, name)

    def _set_several(self, several: Several) -> None:
        """Set the fitted attributes of an emulator of several outputs."""
        self._several = several
        self.output_names_ = several.mapping.names
        self.way_, self.why_ = several.way, several.why
        self.outputs_ = OutputsView(len(self.output_names_), self._output)
        if several.way == "components":
            self.components_ = several.emulators

    def _output(self, j: int) -> Any:
        """The emulator of one output."""
        several = self._several
        if j in several.certain:
            return several.certain[j]
        if several.way == "components":
            return OutputOfField(several, j, self._checked)
        if several.shared is not None:
            return emulator_of(self, several.shared.fit(several.learnt(j)))
        return several.emulators[several.learnt(j)]

    def _set_fit(self, fit: Fit) -> None:
        """Set the fitted attributes."""
        self._fit = fit
        self.inputs_, self.output_, self.posterior_ = fit.inputs, fit.output, fit.posterior
        self.kernel_weights_ = {one.name: one.weight for one in fit.kernels}
        self.kernel_evidence_ = fit.evidence.log_evidence
        self.results_ = {one.name: one.result for one in fit.kernels}
        self.result_, self.modes_, self.map_ = fit.result, fit.modes, fit.best
        self.ensemble_, self.compression_ = fit.ensemble, fit.compression
        self.draws_, self.weights_ = fit.draw_table(), fit.draw_weights()
        self.draw_kernels_ = fit.draw_kernels()
        self.log_evidence_, self.log_evidence_error_ = fit.log_evidence
        self.beta_, self.sigma2_ = fit.trend_and_variance()
