"""Formulas without the network: MathJax from an installed package, copied into the site.

The package ``sphinx-mathjax-offline`` carries MathJax whole. One file of it is enough here, the
one that draws formulas as SVG, needs no fonts and has every extension in it.
"""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

_FILE = "tex-svg-full.js"


def _source() -> Path:
    spec = importlib.util.find_spec("sphinx-mathjax-offline")
    if spec is None or spec.origin is None:
        raise ImportError(
            "Formulas need MathJax from the package sphinx-mathjax-offline: "
            "pip install 'paims[docs]'."
        )
    return Path(spec.origin).parent / "static" / "mathjax" / _FILE


def _copy(app: Any, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        folder = Path(app.outdir) / "_static" / "mathjax"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_source(), folder / _FILE)


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    _source()
    app.config.mathjax_path = f"mathjax/{_FILE}"
    app.connect("build-finished", _copy)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
