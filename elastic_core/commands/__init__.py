"""The command line: one file per command, each with `run_command`, whose parameters are the command's arguments and options.

Exit codes: 0 done, 2 something the user gave does not work (one sentence on stderr), 130 interrupted.
"""

import os
import sys
from collections.abc import Sequence

from elastic_core.commands.command_list import COMMANDS as COMMANDS
from elastic_core.commands.command_list import help_text
from elastic_core.errors import NO_MEMORY, InputError, out_of_memory


def main(words: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    arguments = list(sys.argv[1:] if words is None else words)
    if arguments in (["--help"], ["-h"]):  # whoever asks what there is does not wait for imports
        print(help_text())
        return 0
    from elastic_core.commands.application import run_words

    try:
        code = run_words(arguments)
        sys.stdout.flush()  # a full disk below a redirection is told here, not when Python ends
        return code
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        print(f"error: {NO_MEMORY}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader has seen enough (… | head)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        print(f"error: {place}{error.strerror or error}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what could not be written is not tried again
        return 2
