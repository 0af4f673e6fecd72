"""How the pages' cells draw and print: vectors, which stay sharp on any screen, and no colours."""

c = get_config()  # noqa: F821, IPython defines it
c.InlineBackend.figure_formats = {"svg"}
c.Application.log_level = "ERROR"
c.HistoryManager.enabled = False
# The kernel asks programs for colours, which a page cannot show.
c.IPKernelApp.exec_lines = [
    "import os as _os",
    "_os.environ.pop('FORCE_COLOR', None), _os.environ.pop('CLICOLOR_FORCE', None)",
    "_os.environ['NO_COLOR'] = '1'",
]
