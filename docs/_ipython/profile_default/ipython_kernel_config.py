"""How the pages' cells draw: vectors, which stay sharp on any screen."""

c = get_config()  # noqa: F821, IPython defines it
c.InlineBackend.figure_formats = {"svg"}
c.Application.log_level = "ERROR"
c.HistoryManager.enabled = False
