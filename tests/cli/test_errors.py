"""Every error message, with the input that causes it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

#: Content of runs.csv, arguments of ``paims fit``, and what is said.
TABLES: dict[str, tuple[str | bytes, tuple[str, ...], str]] = {
    "text": (
        "x,flow,y\n1,2,3\n4,n/a,6\n", (),
        "runs.csv, row 3, column 'flow': 'n/a' is not a number. Other columns can be left out "
        "with --ignore, or inputs chosen with --inputs.",
    ),
    "text after a blank line": (
        "x,y\n1,2\n\n\n3,abc\n", (), "runs.csv, row 5, column 'y': 'abc' is not a number.",
    ),
    "text after a cell of two lines": (
        'x,"a\nb",y\n1,2,3\n1,?,3\n', (), "runs.csv, row 4, column 'a\nb': '?' is not a number.",
    ),
    "empty cell": ("x,y\n1,2\n3,\n", (), "runs.csv, row 3, column 'y': the cell is empty."),
    "nan": ("x,y\n1,nan\n", (), "runs.csv, row 2, column 'y': 'nan' is not a finite number."),
    "infinity": ("x,y\n1,-inf\n", (), "column 'y': '-inf' is not a finite number."),
    "underscore": ("x,y\n1,1_000\n", (), "column 'y': '1_000' is not a number."),
    "label": (
        "x,y\n9007199254740992,1\n9007199254740993,2\n", (),
        "runs.csv, row 3, column 'x': '9007199254740993' has more digits than a number here can "
        "keep; is it a label?",
    ),
    "decimal comma": (
        "x;y\n1;2,5\n", (), "column 'y': '2,5' is not a number; write decimals with a point.",
    ),
    "ragged": (
        "x,y\n1,2\n1,2,3\n", (), "runs.csv, row 3: 3 values, but the header has 2 columns.",
    ),
    "no header": (
        "1,2\n3,4\n", (),
        "runs.csv, row 1: 1, 2 are numbers; the first row has to name the columns.",
    ),
    "nameless column": ("x,,y\n1,2,3\n", (), "runs.csv, row 1: column 2 has no name."),
    "equal names": ("x,x,y\n1,2,3\n", (), "runs.csv, row 1: two columns are called 'x'."),
    "no rows": ("x,y\n", (), "runs.csv has a header but no rows."),
    "empty": ("\n", (), "runs.csv is empty; a table has a header row and rows of numbers."),
    "not text": (
        b"x,y\n\xff\xfe,2\n", (),
        "runs.csv is not text in UTF-8 (byte 4); save it as CSV in UTF-8.",
    ),
    "no such output": (
        "x,z\n1,2\n", (), "runs.csv has no column 'y'; its columns are x, z.",
    ),
    "no such input": (
        "x,y\n1,2\n", ("--inputs", "x,w"), "runs.csv has no column 'w'; its columns are x, y.",
    ),
    "no such column to ignore": (
        "x,y\n1,2\n", ("--ignore", "w"), "runs.csv has no column 'w'; its columns are x, y.",
    ),
    "input is output": (
        "x,y\n1,2\n", ("--inputs", "x,y"), "Column 'y' cannot be input and output at once.",
    ),
    "input twice": ("x,y\n1,2\n", ("--inputs", "x,x"), "--inputs names 'x' twice."),
    "no input left": ("y\n1\n", (), "runs.csv has no column left for the inputs."),
    "too few runs": (
        "x,y\n1,2\n2,3\n", (), "runs.csv: Found n_samples=2 run(s), too few: with mean='linear'",
    ),
    "constant output": (
        "x,y\n1,2\n2,2\n3,2\n4,2\n5,2\n6,2\n", (),
        "runs.csv: y takes one value only (2): there is no variation to emulate.",
    ),
    "constant inputs": (
        "x,y\n1,2\n1,3\n1,4\n1,2\n1,3\n1,4\n", (),
        "runs.csv: Every column of X takes one value only (x)",
    ),
    "bad nugget": (
        "x,y\n1,2\n", ("--nugget", "some"),
        "--nugget must be 'estimate' or a number such as 0 or 1e-6; got 'some'.",
    ),
    "bad kernel": (
        "x,y\n1,2\n2,3\n3,5\n4,4\n5,1\n6,2\n", ("--kernel", "rbf"),
        "runs.csv: kernel must be one of",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", list(TABLES))
def test_bad_runs(case: str, invoke: Any, tmp_path: Path) -> None:
    content, arguments, message = TABLES[case]
    path = tmp_path / "runs.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    result = invoke("fit", path, "--output", "y", *arguments)
    assert result.exit_code == 1
    assert f"paims: {message}" in result.stderr or message in result.stderr
    assert result.stdout == ""
    assert not (tmp_path / "emulator.h5").exists()


#: Arguments ({e}: an emulator's file, {d}: the folder, with a table t.csv of x1, x2, y), message.
COMMANDS: dict[str, tuple[tuple[str, ...], str]] = {
    "no output named": (
        ("fit", "{d}/t.csv"),
        "Which column of t.csv is the output? Say --output NAME; its columns are x1, x2, y.",
    ),
    "no runs": (("fit", "{d}/none.csv", "-y", "y"), "There is no file {d}/none.csv."),
    "folder of runs": (
        ("fit", "{d}", "-y", "y"),
        "{d} is a folder; give a table of runs (CSV, TSV or Parquet).",
    ),
    "device": (
        ("info", os.devnull), f"{os.devnull} is a device; give a file, or - for standard input.",
    ),
    "spreadsheet": (
        ("fit", "{d}/t.xlsx", "-y", "y"), "t.xlsx is a spreadsheet; save it as CSV first.",
    ),
    "emulator for a table": (
        ("predict", "{e}", "{e}"), "emulator.h5 is not a table: an HDF5 file (an emulator?).",
    ),
    "damaged parquet": (("fit", "{d}/t.parquet", "-y", "y"), "t.parquet"),
    "emulator to standard output": (
        ("fit", "{d}/t.csv", "-y", "y", "--save", "-"),
        "An emulator cannot go to standard output; give --save a file name.",
    ),
    "file exists": (
        ("fit", "{d}/t.csv", "-y", "y", "--save", "{d}/t.xlsx"),
        "{d}/t.xlsx exists already; --force replaces it.",
    ),
    "folder as target": (
        ("predict", "{e}", "{d}/t.csv", "-o", "{d}"), "{d} is a folder; give the name of a file.",
    ),
    "no folder": (
        ("predict", "{e}", "{d}/t.csv", "-o", "{d}/no/p.csv"),
        "There is no folder {d}/no to write p.csv into.",
    ),
    "no emulator": (
        ("info", "{d}/none.h5"), "There is no file {d}/none.h5; paims fit makes an emulator.",
    ),
    "folder for an emulator": (
        ("report", "{d}"), "{d} is a folder; give the file of an emulator.",
    ),
    "table for an emulator": (("diagnose", "{d}/t.csv"), "cannot be loaded as an emulator"),
    "missing input": (
        ("predict", "{e}", "{d}/x1.csv"), "x1.csv has no column 'x2'; its columns are x1.",
    ),
    "text in new inputs": (
        ("predict", "{e}", "{d}/text.csv"),
        "text.csv, row 2, column 'x2': 'wide' is not a number.",
    ),
    "missing output": (
        ("diagnose", "{e}", "{d}/xs.csv"), "xs.csv has no column 'y'; its columns are x1, x2.",
    ),
    "missing output for the report": (
        ("report", "{e}", "--validation", "{d}/xs.csv"), "xs.csv has no column 'y'",
    ),
    "level": (
        ("predict", "{e}", "{d}/t.csv", "--level", "95"),
        "--level must lie between 0 and 1, such as 0.95; got 95.",
    ),
    "columns that predictions need": (
        ("predict", "{e}", "{d}/taken.csv"),
        "taken.csv already has a column 'y_mean'; rename it, as predictions go there.",
    ),
    "two results on standard output": (
        ("report", "{e}", "--json", "-o", "-"),
        "--json and --out - both want standard output; give --out a file.",
    ),
    "all draws and some": (
        ("sample", "{e}", "--weighted", "-n", "5"),
        "--weighted gives all draws; leave out --draws.",
    ),
    "demo exists": (
        ("demo", "--out", "{d}"),
        "{d} already holds runs.csv; --force replaces them, --out takes another folder.",
    ),
    "demo in a file": (
        ("demo", "--out", "{d}/t.csv"), "{d}/t.csv is a file; give --out a folder.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", list(COMMANDS))
def test_bad_arguments(case: str, invoke: Any, tmp_path: Path, emulator_file: Path) -> None:
    files = {
        "t.csv": "x1,x2,y\n0.1,0.2,3\n", "t.xlsx": "", "t.parquet": "x", "x1.csv": "x1\n0.5\n",
        "text.csv": "x1,x2\n0.1,wide\n", "xs.csv": "x1,x2\n0.1,0.2\n",
        "taken.csv": "x1,x2,y_mean\n0.1,0.2,3\n", "runs.csv": "",
    }  # fmt: skip
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    before = sorted(tmp_path.iterdir())
    arguments, message = COMMANDS[case]
    filled = [a.format(e=emulator_file, d=tmp_path) for a in arguments]
    result = invoke(*filled)
    assert result.exit_code == 1
    assert message.format(e=emulator_file, d=tmp_path) in result.stderr
    assert result.stderr.startswith("paims: ")
    assert result.stdout == ""
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "arguments", [("fit",), ("predict", "x.h5"), ("nonsense",), ("info", "--colour")]
)
def test_wrong_command_line(arguments: tuple[str, ...], invoke: Any) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert "Usage" in result.stderr


#: Commands that would write over what they read.
READ_FROM: dict[str, tuple[str, ...]] = {
    "predict, emulator": ("predict", "e.h5", "n.csv", "--out", "e.h5"),
    "predict, inputs": ("predict", "e.h5", "n.csv", "--out", "n.csv"),
    "predict, inputs by a link": ("predict", "e.h5", "n.csv", "--out", "link.csv"),
    "report, emulator": ("report", "e.h5", "--out", "e.h5"),
    "report, held-out runs": ("report", "e.h5", "--validation", "n.csv", "--out", "./n.csv"),
    "report, inputs": ("report", "e.h5", "--predict", "n.csv", "--out", "n.csv"),
    "sample, emulator": ("sample", "e.h5", "--out", "e.h5"),
    "fit, runs": ("fit", "n.csv", "-y", "y", "--save", "n.csv"),
    "fit, runs by a link": ("fit", "n.csv", "-y", "y", "--save", "link.csv"),
    "fit, checkpoint": ("fit", "n.csv", "-y", "y", "--checkpoint", "n.csv"),
}


@pytest.mark.parametrize("case", list(READ_FROM))
def test_no_command_writes_over_what_it_reads(
    case: str, invoke: Any, tmp_path: Path, emulator_file: Path
) -> None:
    (tmp_path / "e.h5").write_bytes(emulator_file.read_bytes())
    (tmp_path / "n.csv").write_text("x1,x2,y\n0.1,0.2,3\n")
    (tmp_path / "link.csv").hardlink_to(tmp_path / "n.csv")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    result = invoke(*READ_FROM[case], "--force")
    assert result.exit_code == 1
    assert "name another file" in result.stderr
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_devices_are_no_targets(invoke: Any, tmp_path: Path, emulator_file: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")
    for command in ("report", "sample"):
        result = invoke(command, emulator_file, "--out", "pipe", "--force")
        assert result.exit_code == 1
        assert "pipe is not a regular file; give the name of one, or -." in result.stderr
    assert (tmp_path / "pipe").is_fifo()
