"""Sphinx configuration."""

from paims import __version__

project = "paims"
author = "The paims developers"
copyright = "2026, The paims developers"
release = __version__
extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
]
html_theme = "furo"
html_title = f"paims {release}"
nb_execution_mode = "off"
autodoc_typehints = "none"
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False
exclude_patterns = ["_build"]
