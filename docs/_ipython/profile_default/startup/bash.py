"""``%%bash`` whose output comes in one piece, and which fails with the first command that does."""

import os
import subprocess

from IPython.core.magic import register_cell_magic


@register_cell_magic
def bash(line, cell):
    """Run a cell by the shell. No colours, which a page cannot show."""
    quiet = {
        key: value
        for key, value in os.environ.items()
        if key not in ("FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE")
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", cell],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env={**quiet, "NO_COLOR": "1"},
    )
    print(done.stdout, end="")
    if done.returncode:
        raise RuntimeError(f"The shell ended with exit code {done.returncode}.")
