"""The command line: ``paims``.

Importing this is quick; a command loads what it needs when it runs.
"""

from __future__ import annotations

import os
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; says what to install if the extra ``app`` is missing."""
    from paims.cli._streams import abandon, mend  # noqa: PLC0415 - loads nothing heavy

    mend()
    # Figures go to files; a backend that this machine does not have must not matter.
    os.environ["MPLBACKEND"] = "agg"
    try:
        from paims.cli._app import app  # noqa: PLC0415 - the extra may be missing
    except ImportError as error:
        if error.name is None or error.name.startswith("paims"):
            raise
        print(
            f"paims: the command line needs {error.name}: install it with "
            "pip install 'paims[app]'.",
            file=sys.stderr,
        )
        raise SystemExit(1) from None
    try:
        app()
    except OSError as error:  # of the help or the version; commands explain their own
        abandon(sys.stdout)
        print(f"paims: {error.strerror or error}.", file=sys.stderr)
        raise SystemExit(1) from None
