"""``python -m paims`` is the command line."""

from paims.cli import main

main()
