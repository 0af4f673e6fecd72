"""Sphinx configuration."""

import os
import sys
from pathlib import Path

from paims import __version__, datasets

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

# Cells call the command line as a reader would; the kernels inherit these.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
os.environ["IPYTHONDIR"] = str(HERE / "_ipython")
os.environ["COLUMNS"] = "88"
beside = HERE.parent.parent / "shared" / "data"
if beside.is_dir():
    os.environ.setdefault(datasets.DATA_DIR_VARIABLE, str(beside))

project = "paims"
author = "The paims developers"
copyright = "2026, The paims developers"
release = __version__
extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "layers",
    "life",
    "local_mathjax",
    "messages",
]
exclude_patterns = ["_build", "_ext", "_ipython", "jupyter_execute"]

smartquotes = False  # messages and options are quoted as they are
html_theme = "furo"
html_title = f"paims {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# Every cell of every page is run by every build, and an error or a warning ends it.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_execution_excludepatterns = []
nb_execution_in_temp = True
nb_mime_priority_overrides = [("*", "text/html", 5), ("*", "image/svg+xml", 4)]

autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False

# The published runs of the Nilson-Kuusk model are not part of the package. Where they can be had
# neither from a folder nor from the network, their story is told without its figures.
try:
    datasets.load_nilson_kuusk()
except (ConnectionError, FileNotFoundError, ImportError):
    tags.add("no_data")  # noqa: F821, Sphinx defines it
    nb_execution_excludepatterns = ["why-nilson-kuusk.md"]
