"""`python -m plait` is the command `plait`."""

import sys

from plait.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
