"""`python -m elastic_core`: the command line."""

import io
import sys

from elastic_core.commands import main

if __name__ == "__main__":
    if sys.argv[1:2] not in ([], ["-h"], ["--help"]):  # who asks what there is does not wait for torch
        from elastic_core.machine import keep_memory

        keep_memory()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as stderr is: √ where the output is cp1252, cp932 or ASCII
    sys.exit(main())
