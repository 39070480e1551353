"""The program `elastic`, which is also `python -m elastic_core`."""

import io
import os
import sys

from elastic_core import commands

QUICK = {"-h", "--help", "--version", "--install-completion", "--show-completion"}  # whoever asks this does not wait for torch


def main() -> int:
    """Runs the command line and returns its exit code."""
    if not QUICK.issuperset(sys.argv[1:2]) and "_ELASTIC_COMPLETE" not in os.environ:
        from elastic_core.machine import keep_memory

        keep_memory()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as stderr is: √ where the output is cp1252, cp932 or ASCII
    return commands.main()


if __name__ == "__main__":
    sys.exit(main())
