"""The command line: one file per command, each with `configure(parser)` and `run(arguments) -> exit code`.

Exit codes: 0 done, 2 something the user gave does not work (one sentence on stderr), 130 interrupted.
"""

import argparse
import importlib
import os
import re
import sys
from collections.abc import Sequence
from typing import NoReturn

from elastic_core.errors import NO_MEMORY, InputError, out_of_memory

COMMANDS = {
    "data": "look at a source or a file of your own before training on it",
    "study": "what pays on your own clicks? one page of answers within the minutes you name",
    "train": "train a model into a run folder, or go on with one that was interrupted",
    "evaluate": "rank everybody's held-out item with a trained run, with intervals",
    "recommend": "what a trained run recommends to a person, or after a history you type",
    "score": "lists of another library under the same protocols, beside a run",
    "compare": "is one run better than another? a paired test over people",
    "routing": "is the memory of a run alive, and how evenly is it used?",
    "experts": "what does each expert of a run stand for, and does it matter?",
    "export": "a trained run as one file of torch.export that runs without this package",
    "serve-model": "a trained run as a service over HTTP: lists after histories, and for people whose events it keeps",
    "serve": "the app for a whole class: several processes behind one address",
    "bench": "time ELASTIC and SASRec side by side and keep the rows",
    "convert": "bring run folders of an older version up to date",
    "reproduce": "train every run of the result tables, resumable, and print the tables",
}


class Parser(argparse.ArgumentParser):
    """argparse, but a wrong argument is an InputError: one sentence instead of a page of usage."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message} (see: {self.prog} --help)")


def main(words: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    words_given = list(sys.argv[1:] if words is None else words)
    try:
        arguments = make_parser(words_given).parse_args(words_given)
        code = int(arguments.run(arguments))
        sys.stdout.flush()  # a full disk below a redirection is told here, not when Python ends
        return code
    except InputError as error:
        print(f"error: {error}{_dash_hint(str(error), words_given)}", file=sys.stderr)
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


def _dash_hint(message: str, given: list[str]) -> str:
    """Return how a value that begins with a dash is written, where argparse took it for an option; else nothing."""
    option = re.match(r"argument (--[a-z-]+)[^:]*: expected one argument", message)
    if option is None or option[1] not in given[:-1]:
        return ""
    value = given[given.index(option[1]) + 1]
    return f": a value that begins with a dash is joined by =, as in {option[1]}={value}" if value.startswith("-") else ""


def module_of(command: str) -> str:
    """`serve-model` → serve_model."""
    return command.replace("-", "_")


def make_parser(given: Sequence[str]) -> Parser:
    """Only the command that was asked for is imported: `--help` answers at once."""
    parser = Parser(
        prog="python -m elastic_core",
        description="ELASTIC: sequential recommendation with linear attention over retrieved interests.",
        epilog="Each command explains itself: python -m elastic_core train --help",
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True, dest="command")
    command_name = next((word for word in given if not word.startswith("-")), None)
    for name, what in COMMANDS.items():
        module = importlib.import_module(f"elastic_core.commands.{module_of(name)}") if name == command_name else None
        command = commands.add_parser(
            name, help=what, description=module.__doc__ if module else what, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        if module is not None:
            module.configure(command)
            command.set_defaults(run=module.run)
    return parser
