"""`python -m elastic_core`: the command line."""

import sys

from elastic_core.commands import main
from elastic_core.machine import keep_memory

if __name__ == "__main__":
    keep_memory()
    sys.exit(main())
