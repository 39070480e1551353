"""`python -m elastic_core`: the command line."""

import sys

from elastic_core.commands import main

if __name__ == "__main__":
    sys.exit(main())
