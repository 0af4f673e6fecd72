"""``python -m paims`` is the command line."""

from paims.cli import main

if __name__ == "__main__":
    main()
