"""The commands, their options and their help."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperOption

import paims
from paims.cli._running import (
    CommandError,
    ExitCode,
    collected_warnings,
    command,
    print_json,
    same_command,
    say,
    tell,
    working,
)
from paims.cli._tables import (
    STANDARD,
    check_target,
    delimiter_of,
    format_csv,
    read_table,
    write_text,
)

app = typer.Typer(
    name="paims",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_show_locals=False,
    help=(
        "From a table of simulator runs to an emulator that you can trust, and a report.\n\n"
        "Start with [bold]paims demo[/bold]. Files are CSV, TSV or Parquet; [bold]-[/bold] is "
        "standard input or output. Nothing is overwritten without [bold]--force[/bold].\n\n"
        "Exit codes: 0 fine, 1 an error that the message explains, 2 a wrong command line, 3 a "
        "check speaks against the emulator (diagnose) or a finding does not hold (reproduce), 130 "
        "interrupted."
    ),
)

_Emulator = Annotated[
    str, typer.Argument(metavar="EMULATOR", help="File that [bold]paims fit[/bold] wrote.")
]
_Force = Annotated[bool, typer.Option("--force", "-f", help="Replace files that exist.")]
_Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for machines.")]
_Seed = Annotated[
    int, typer.Option("--seed", min=0, help="The same seed gives the same result, to the bit.")
]


class _NamesInHelp(TyperCommand):
    """A command whose help lists what the registries of the library name."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Put the names where the options' help has ``{kernels}`` and the like."""
        from paims import gp  # noqa: PLC0415 - slow to import

        names = {
            "kernels": ", ".join(gp.KERNELS),
            "means": ", ".join(gp.MEANS),
            "priors": ", ".join(gp.PRIORS),
            "nugget_priors": ", ".join(gp.NUGGET_PRIORS),
        }
        for parameter in self.params:
            if isinstance(parameter, TyperOption) and parameter.help:
                parameter.help = parameter.help.format(**names)
        super().format_help(ctx, formatter)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"paims {paims.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Options of the program itself."""


@app.command(
    epilog="Examples:  paims demo   |   paims demo --out try --force",
)
@command
def demo(
    out: Annotated[str, typer.Option("--out", "-o", help="Folder to write into.")] = "demo",
    force: _Force = False,
    as_json: _Json = False,
) -> None:
    """Try everything: simulate runs of Branin's function, fit, predict, check and report."""
    from paims.cli._examples import run_demo  # noqa: PLC0415 - slow to import

    run_demo(Path(out), force, as_json)


@app.command(
    cls=_NamesInHelp,
    epilog=(
        "Examples:  paims fit runs.csv --output y   |   paims fit runs.csv --output flow "
        "--inputs depth,width --save flow.h5 --kernel matern52   |   cat runs.csv | paims fit - "
        "--output y --json"
    ),
)
@command
def fit(
    context: typer.Context,
    runs: Annotated[str, typer.Argument(metavar="RUNS", help="Table of runs, one per row.")],
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            "-y",
            help="Column to emulate; several times, or a pattern such as 'pressure_*', for "
            "several outputs.",
        ),
    ] = None,
    inputs: Annotated[
        str | None, typer.Option("--inputs", "-x", help="Columns a,b,c; by default all others.")
    ] = None,
    ignore: Annotated[
        str | None, typer.Option("--ignore", help="Columns a,b,c that are no inputs.")
    ] = None,
    save: Annotated[str, typer.Option("--save", "-s", help="File for the emulator.")] = (
        "emulator.h5"
    ),
    kernel: Annotated[
        str,
        typer.Option(help="{kernels}; several as a,b,c are averaged; auto: of the smooth ones."),
    ] = "auto",
    mean: Annotated[str, typer.Option(help="Trend: {means}.")] = "linear",
    prior: Annotated[
        str,
        typer.Option(
            help="Of the length-scales: {priors}; auto: reference where it is affordable, "
            "jointly_robust beyond."
        ),
    ] = "auto",
    nugget: Annotated[
        str, typer.Option(help="Noise: 'estimate', or a fixed share of the variance such as 0.")
    ] = "estimate",
    nugget_prior: Annotated[
        str,
        typer.Option(help="Of an estimated nugget: {nugget_priors}."),
    ] = "spike_slab",
    n_samples: Annotated[
        int | None, typer.Option("--samples", help="Points of the sampler at each level.")
    ] = None,
    way: Annotated[
        str,
        typer.Option(help="How several outputs are learnt: auto, separate, shared, components."),
    ] = "auto",
    seed: _Seed = 0,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", help="Threads.")] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Processes in place of threads: of several outputs that are fitted apart, each "
            "process takes one after the other.",
        ),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            help="File to go on from after an interruption; by default one beside --save, removed "
            "when the fit is done."
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Start a fit of more than an hour without a question.")
    ] = False,
    force: _Force = False,
    as_json: _Json = False,
) -> None:
    """Fit an emulator to a table of runs and save it.

    A fit that was interrupted goes on when the command is given again.
    """
    from paims.cli._fit import (  # noqa: PLC0415 - slow to import
        Resumable,
        fit_and_save,
        fixed_or_estimated,
        names_of,
        processes,
        saved_already,
        select,
    )

    if save == STANDARD:
        raise CommandError("An emulator cannot go to standard output; give --save a file name.")
    check_target(save, force, runs)
    table = read_table(runs)
    selection = select(table, output, inputs, ignore)
    arguments: dict[str, Any] = {
        "kernel": names_of(kernel) if "," in kernel else kernel,
        "mean": mean,
        "prior": prior,
        "nugget": fixed_or_estimated(nugget),
        "nugget_prior": nugget_prior,
        "n_samples": n_samples,
        "random_state": seed,
        "n_jobs": jobs,
        "outputs": way,
    }
    resumable = Resumable.beside(save, checkpoint, same_command(context), force, runs)
    executor = None if workers is None else partial(processes, workers)
    facts = fit_and_save(table, selection, arguments, as_json, resumable, save, yes, executor)
    try:
        if as_json:
            print_json({"file": save, **facts})
            return

        from paims.cli._describe import print_emulator  # noqa: PLC0415 - slow to import
        from paims.cli._several import print_several  # noqa: PLC0415

        (print_several if selection.several else print_emulator)(facts)
    except KeyboardInterrupt:
        raise saved_already(save) from None
    say(f"Saved to {save}. Next: paims report {save}")


@app.command(
    epilog=(
        "Examples:  paims predict emulator.h5 new.csv   |   paims predict emulator.h5 new.csv "
        "--out predictions.csv --level 0.9   |   cat new.csv | paims predict emulator.h5 - | head"
    ),
)
@command
def predict(
    emulator: _Emulator,
    new: Annotated[str, typer.Argument(metavar="NEW", help="Table of inputs to predict at.")],
    out: Annotated[str, typer.Option("--out", "-o", help="File to write; - prints.")] = STANDARD,
    level: Annotated[float, typer.Option(help="Probability of the interval.")] = 0.95,
    smooth: Annotated[
        bool, typer.Option("--smooth", help="Without the noise of a single run.")
    ] = False,
    force: _Force = False,
    as_json: _Json = False,
) -> None:
    """Predict at new inputs: the table again, with mean, std and an interval for each row."""
    from paims.cli._emulators import (  # noqa: PLC0415 - slow to import
        extrapolation,
        inputs_of,
        joined,
        open_emulator,
        predict_rows,
        prediction_columns,
    )

    if not 0.0 < level < 1.0:
        raise CommandError(f"--level must lie between 0 and 1, such as 0.95; got {level:g}.")
    check_target(out, force, emulator, new)
    loaded, provenance = open_emulator(emulator)
    table = read_table(new)
    X = inputs_of(loaded, table)
    if hasattr(loaded, "outputs_"):
        from paims.cli._several import predict_columns, predict_outputs  # noqa: PLC0415

        columns = predict_columns(loaded, level)
        values = predict_outputs(loaded, X, level, smooth, as_json)
    else:
        columns = prediction_columns(provenance.output, level)
        values = predict_rows(loaded, X, level, smooth, as_json)
    header, rows = joined(table, columns, values)
    outside, notes = extrapolation(loaded, X)
    for note in () if as_json else notes:
        say(f"warning: {note}")
    if as_json:
        records = [dict(zip(header, row, strict=True)) for row in rows]
        result = {"level": level, "outside": outside, "rows": records}
        if out == STANDARD:
            print_json(result)
            return
        print_json({**result, "rows": len(rows), "file": out})
    write_text(out, format_csv(header, rows, delimiter_of(out)))
    if out != STANDARD and not as_json:
        say(f"{len(rows)} predictions written to {out}.")


@app.command(
    epilog=(
        "Examples:  paims report emulator.h5   |   paims report emulator.h5 --validation "
        "held-out.csv --predict new.csv --out report.html"
    ),
)
@command
def report(
    emulator: _Emulator,
    out: Annotated[str, typer.Option("--out", "-o", help="HTML file; - prints.")] = "report.html",
    validation: Annotated[
        str | None, typer.Option(help="Table of runs that the emulator has not seen.")
    ] = None,
    new: Annotated[
        str | None, typer.Option("--predict", help="Table of inputs to tabulate predictions at.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    force: _Force = False,
    as_json: _Json = False,
) -> None:
    """Write a report: one HTML file, to be opened in any browser and mailed to anyone."""
    from paims.cli._emulators import inputs_of, open_emulator  # noqa: PLC0415 - slow to import

    check_target(out, force, emulator, validation, new)
    if as_json and out == STANDARD:
        raise CommandError("--json and --out - both want standard output; give --out a file.")
    loaded, provenance = open_emulator(emulator)
    held_out = None
    if validation is not None:
        table = read_table(validation)
        if hasattr(loaded, "outputs_"):
            Y = table.values(loaded.output_names_, missing=True)
        else:
            Y = table.values([provenance.output])[:, 0]
        held_out = (inputs_of(loaded, table), Y)
    points = None if new is None else inputs_of(loaded, read_table(new))

    from paims.cli._emulators import write_report  # noqa: PLC0415 - slow to import

    found, size = write_report(loaded, provenance, out, held_out, points, title, as_json)
    if as_json:
        told = {answer.pop("key"): answer for answer in map(asdict, found)}
        print_json({"file": out, "bytes": size, "answers": told})
    elif out != STANDARD:
        for answer in found:
            tell(f"{answer.question} {answer.short}.")
        say(f"Report written to {out}.")


@app.command(
    epilog=(
        "Examples:  paims diagnose emulator.h5 held-out.csv   |   paims diagnose emulator.h5 "
        "--json"
    ),
)
@command
def diagnose(
    emulator: _Emulator,
    runs: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUNS]", help="Table of runs it has not seen; without, leave-one-out."
        ),
    ] = None,
    as_json: _Json = False,
) -> None:
    """Check an emulator against runs that it has not seen; exit code 3 if a check fails."""
    from paims.cli._describe import (  # noqa: PLC0415 - slow to import
        loo_as_dict,
        print_checks,
        validation_as_dict,
    )
    from paims.cli._emulators import inputs_of, open_emulator  # noqa: PLC0415

    loaded, provenance = open_emulator(emulator)
    if hasattr(loaded, "outputs_"):
        _diagnose_several(loaded, runs, as_json)
        return
    if runs is None:
        try:
            checks = loo_as_dict(loaded.leave_one_out())
        except ValueError as error:
            raise CommandError(str(error)) from None
        title = "Each run predicted from all others"
    else:
        table = read_table(runs)
        X, y = inputs_of(loaded, table), table.values([provenance.output])[:, 0]
        with collected_warnings(), working("Computing diagnostics", as_json):
            checks = validation_as_dict(loaded.ensemble_.validate(loaded.inputs_.apply(X), y))
        title = f"{table.name} against the emulator"
    if as_json:
        print_json(checks)
    else:
        print_checks(title, checks)
    if not checks["passed"]:
        raise typer.Exit(ExitCode.CHECKS)


def _diagnose_several(loaded: Any, runs: str | None, as_json: bool) -> None:
    from paims.cli._emulators import inputs_of  # noqa: PLC0415 - slow to import
    from paims.cli._several import diagnosed, outputs_of, print_diagnosed  # noqa: PLC0415

    held_out, title = None, "Each run predicted from all others"
    if runs is not None:
        table = read_table(runs)
        held_out = inputs_of(loaded, table), outputs_of(loaded, table)
        title = f"{table.name} against the emulator"
    with collected_warnings(), working("Computing diagnostics", as_json):
        told = diagnosed(loaded, held_out)
    if as_json:
        print_json(told)
    else:
        print_diagnosed(title, told)
    if not told["passed"]:
        raise typer.Exit(ExitCode.CHECKS)


@app.command(
    epilog=(
        "Examples:  paims sample emulator.h5 --out draws.csv   |   paims sample emulator.h5 -n "
        "1000 | head   |   paims sample emulator.h5 --out draws.nc"
    ),
)
@command
def sample(
    emulator: _Emulator,
    out: Annotated[
        str, typer.Option("--out", "-o", help="File: .csv, .tsv or .nc (NetCDF); - prints.")
    ] = STANDARD,
    n_draws: Annotated[
        int | None,
        typer.Option("--draws", "-n", min=1, help="How many; by default the effective number."),
    ] = None,
    weighted: Annotated[
        bool, typer.Option("--weighted", help="All draws with their weights instead.")
    ] = False,
    output: Annotated[
        str | None, typer.Option("--output", "-y", help="Which of several outputs.")
    ] = None,
    seed: _Seed = 0,
    force: _Force = False,
    as_json: _Json = False,
) -> None:
    """Write draws of the length-scales and the nugget, in your units."""
    from paims.cli._emulators import draws, open_emulator, write_netcdf  # noqa: PLC0415 - slow to import

    check_target(out, force, emulator)
    if weighted and n_draws is not None:
        raise CommandError("--weighted gives all draws; leave out --draws.")
    loaded, _ = open_emulator(emulator)
    if hasattr(loaded, "outputs_"):
        from paims.cli._several import one_output  # noqa: PLC0415 - slow to import

        loaded = one_output(loaded, output)
    names, values = draws(loaded, n_draws, weighted, seed)
    if out.lower().endswith(".nc"):
        write_netcdf(Path(out), names, values)
    elif not (as_json and out == STANDARD):
        write_text(out, format_csv(names, values.tolist(), delimiter_of(out)))
    if as_json:
        told: dict[str, Any] = {"n_draws": len(values), "columns": names}
        if out == STANDARD:
            told["draws"] = values
        else:
            told["file"] = out
        print_json(told)
    elif out != STANDARD:
        say(f"{len(values)} draws written to {out}.")


@app.command(epilog="Examples:  paims info emulator.h5   |   paims info runs.csv --json")
@command
def info(
    file: Annotated[str, typer.Argument(metavar="FILE", help="An emulator or a table.")],
    as_json: _Json = False,
) -> None:
    """Say what is in a file: an emulator with its modes, or a table with its columns."""
    from paims.cli._describe import (  # noqa: PLC0415 - slow to import
        print_emulator,
        print_table,
        table_as_dict,
    )
    from paims.cli._emulators import open_emulator  # noqa: PLC0415
    from paims.emulator._description import emulator_facts  # noqa: PLC0415

    if Path(file).suffix.lower() in (".h5", ".hdf5"):
        loaded, provenance = open_emulator(file)
        if hasattr(loaded, "outputs_"):
            from paims.cli._several import print_several, several_facts  # noqa: PLC0415

            facts, show = several_facts(loaded, provenance), print_several
        else:
            facts, show = emulator_facts(loaded, provenance), print_emulator
        if as_json:
            print_json(facts)
        else:
            show(facts)
        return
    about = table_as_dict(read_table(file))
    if as_json:
        print_json(about)
    else:
        print_table(about)


@app.command(
    epilog=(
        "Examples:  paims reproduce all   |   paims reproduce branin --scheme paper --out branin"
        "   |   paims reproduce nilson-kuusk --seed 1 --force"
    ),
)
@command
def reproduce(
    experiment: Annotated[
        str,
        typer.Argument(
            metavar="EXPERIMENT", help="one-d, branin, two-d-model, nilson-kuusk or all."
        ),
    ],
    scheme: Annotated[
        str, typer.Option(help="Choices of the sampler: paper, default or both.")
    ] = "both",
    seed: _Seed = 0,
    n_samples: Annotated[
        int | None,
        typer.Option(
            "--samples",
            help="Points of the sampler at each level; by default the paper's number, and for "
            "the default scheme the library's own.",
        ),
    ] = None,
    out: Annotated[str, typer.Option("--out", "-o", help="Folder to write into.")] = "paper",
    force: _Force = False,
    as_json: _Json = False,
) -> None:
    """Run the paper's experiments: its figures, its table beside ours, its findings checked."""
    from paims.cli._examples import run_reproduce  # noqa: PLC0415 - slow to import

    run_reproduce(experiment, scheme, seed, n_samples, Path(out), force, as_json)
