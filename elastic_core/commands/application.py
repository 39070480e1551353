"""The program `elastic`, by typer. A command's file is imported when it is named, since most of them need torch."""

import importlib
import os
import re
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

import elastic_core
from elastic_core.commands.command_list import COMMANDS, help_text
from elastic_core.errors import InputError

NAMES = {"help_option_names": ["-h", "--help"]}


class LazyGroup(TyperGroup):
    """All commands by name; only the one that is named is imported."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"elastic_core.commands.{cmd_name.replace('-', '_')}")
        command = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=NAMES)
        command.command(cmd_name, help=keep_lines(module.__doc__ or ""), context_settings=NAMES)(module.run_command)
        return get_command(command)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(help_text() + "\n")

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        from typer._click.shell_completion import CompletionItem

        return [CompletionItem(name, help=what) for name, what in COMMANDS.items() if name.startswith(incomplete)]


application = typer.Typer(cls=LazyGroup, rich_markup_mode=None, context_settings=NAMES)


def print_version(wanted: bool) -> None:
    if wanted:
        print(f"elastic {elastic_core.__version__}")
        raise typer.Exit


@application.callback()
def accept_options(version: Annotated[bool, typer.Option("--version", callback=print_version, is_eager=True)] = False) -> None:
    """ELASTIC."""


def keep_lines(text: str) -> str:
    """A help text whose indented paragraphs, its examples, are shown line by line; all others are filled."""
    return re.sub(r"\n\n(?=  )", "\n\n\b\n", text)


def run_words(words: list[str]) -> int:
    """Run what was typed and return its exit code. Raises InputError for words that no command takes."""
    program = get_command(application)
    if "_ELASTIC_COMPLETE" in os.environ:  # a shell asks what could follow
        program.main(words, prog_name="elastic")
    try:
        with program.make_context("elastic", words) as context:
            program.invoke(context)
        return 0
    except typer.Exit as exit_error:
        return exit_error.exit_code
    except typer.TyperException as error:
        command_path = getattr(getattr(error, "ctx", None), "command_path", None) or " ".join(["elastic", *words[:1]])
        message = error.format_message().replace("Value error, ", "").rstrip(".")
        raise InputError(f"{message[:1].lower()}{message[1:]} (see: {command_path} --help)") from None


def check_words(words: list[str]) -> None:
    """Parse a command without running it. Raises as `run_words` does."""
    command = LazyGroup(name="elastic").get_command(None, words[0])
    if command is None:
        raise InputError(f"there is no command {words[0]!r}")
    try:
        command.make_context(words[0], list(words[1:]))
    except typer.TyperException as error:
        raise InputError(error.format_message()) from None
