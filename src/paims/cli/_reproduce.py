"""``paims reproduce``: the paper's experiments, with a table beside the paper's and figures."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import typer

import paims
from paims.cli._errors import CommandError, ExitCode, Interrupted
from paims.cli._files import make_folder, write_text
from paims.cli._running import plain, print_json, say, working

if TYPE_CHECKING:
    from paims.experiments import Outcome, Settings

_SCHEMES = {"both": ("paper", "default"), "paper": ("paper",), "default": ("default",)}
_RESULTS = ("results.json", "results.md")
_INTRODUCTION = (
    "The experiments of Garbuno-Inigo, DiazDelaO and Zuev (2016), Gaussian process "
    "hyper-parameter estimation using Parallel Asymptotically Independent Markov Sampling, "
    "Computational Statistics & Data Analysis 103."
)


def run_reproduce(
    which: str,
    scheme: str,
    seed: int,
    n_samples: int | None,
    folder: Path,
    force: bool,
    as_json: bool,
) -> None:
    """Run experiments, write their results, and exit with 3 if a finding does not hold."""
    from paims import experiments  # noqa: PLC0415 - slow to import

    if which != "all" and which not in experiments.NAMES:
        raise CommandError(
            f"There is no experiment '{which}'; use one of {', '.join(experiments.NAMES)} or all."
        )
    if scheme not in _SCHEMES:
        raise CommandError(f"--scheme must be paper, default or both; got '{scheme}'.")
    names = experiments.NAMES if which == "all" else (which,)
    make_folder(folder, _RESULTS, force)
    settings = experiments.Settings(schemes=_SCHEMES[scheme], seed=seed, n_samples=n_samples)
    outcomes = []
    start = monotonic()
    for name in names:
        outcomes.append(_run(name, settings, folder, as_json))
        if not as_json:
            say(f"{name}: {len(outcomes[-1].pictures)} figures, {_verdict(outcomes[-1])}.")
    results = _results(outcomes, settings)
    write_text(str(folder / "results.json"), json.dumps(plain(results), indent=2) + "\n")
    write_text(str(folder / "results.md"), _markdown(outcomes))
    failed = [check for outcome in outcomes for check in outcome.failed]
    if as_json:
        told = {"files": [str(folder / name) for name in _RESULTS], **results}
        print_json(told)
    else:
        for check in failed:
            typer.echo(f"does not hold: {check.key}. {check.detail}")
        n_checks = sum(len(outcome.checks) for outcome in outcomes)
        typer.echo(
            f"{n_checks - len(failed)} of {n_checks} findings of the paper hold. See "
            f"{folder / 'results.md'} ({monotonic() - start:.0f} s)."
        )
    if failed:
        raise typer.Exit(ExitCode.CHECKS)


def _run(name: str, settings: Settings, folder: Path, as_json: bool) -> Outcome:
    from paims import experiments  # noqa: PLC0415 - slow to import

    try:
        with working(f"Running {name}", as_json):
            outcome = experiments.run(name, settings)
            for picture in outcome.pictures:
                picture.save(folder)
    except KeyboardInterrupt:
        raise Interrupted(
            f"Figures that were done stay in {folder}; results.json and results.md were not "
            "written."
        ) from None
    except (ImportError, ConnectionError, FileNotFoundError, ValueError) as error:
        raise CommandError(f"{name}: {error}") from error
    except OSError as error:
        raise CommandError(f"{name}: {folder} cannot be written: {error.strerror}.") from None
    return outcome


def _verdict(outcome: Outcome) -> str:
    if not outcome.checks:
        return "no finding to check"
    if outcome.failed:
        return f"{len(outcome.failed)} of {len(outcome.checks)} findings do not hold"
    return f"{len(outcome.checks)} findings hold"


def _results(outcomes: list[Outcome], settings: Settings) -> dict[str, Any]:
    from paims.experiments import FORMAT_VERSION  # noqa: PLC0415 - slow to import

    return {
        "format": "paims reproduction",
        "format_version": FORMAT_VERSION,
        "paims": paims.__version__,
        "settings": asdict(settings),
        "passed": not any(outcome.failed for outcome in outcomes),
        "experiments": {outcome.name: outcome.as_dict() for outcome in outcomes},
    }


def _markdown(outcomes: list[Outcome]) -> str:
    sections = [outcome.as_markdown() for outcome in outcomes]
    return "\n".join(["# The paper, reproduced\n", _INTRODUCTION + "\n", *sections])
