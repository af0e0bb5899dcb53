"""Run the command line: ``python -m prslib --help``, the same as ``prslib --help``."""

import sys

from prslib.cli import main

if __name__ == "__main__":
    sys.exit(main())
