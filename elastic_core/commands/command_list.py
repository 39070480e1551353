"""All commands by group, and the screen that shows them. It imports nothing: `elastic --help` answers at once."""

GROUPS = {
    "Your data": {
        "data": "look at a file of your own, or a named source, before you train on it",
        "study": "find out which model suits your clicks: one page of answers",
    },
    "Models": {
        "train": "train a model into a run folder, or go on with one that was stopped",
        "evaluate": "rank everybody's held-out item with a run, with intervals",
        "recommend": "list what a run recommends to one person, or write everybody's lists",
        "compare": "is one run better than another? A paired test over people",
        "score": "rank the lists of another library under the same protocols",
    },
    "Inside a model": {
        "experts": "what does each expert of a run stand for, and does it matter?",
        "routing": "are all experts of a run used, and is it more than chance?",
    },
    "Put to use": {
        "serve": "answer over HTTP: lists after histories, and for people it follows",
        "export": "write a run as one file that works without this package",
        "convert": "bring run folders of an older version up to date",
    },
    "Teaching and measuring": {
        "serve-class": "open the app to a whole class: several processes at one address",
        "bench": "time systems side by side and keep the rows",
        "reproduce": "train the runs of the result tables, and print the tables",
    },
}
COMMANDS = {name: what for group in GROUPS.values() for name, what in group.items()}


def help_text() -> str:
    """All commands on one screen."""
    lines = ["Usage: elastic COMMAND [ARGS]...", "", "ELASTIC: recommendations from long histories, explained."]
    for group, commands in GROUPS.items():
        lines += ["", f"{group}:", *(f"  {name:<12} {what}" for name, what in commands.items())]
    lines += [
        "", "Begin with: elastic data groceries. Each command explains itself: elastic train --help",
        "Options: --version, --install-completion, --show-completion, --help",
    ]  # fmt: skip
    return "\n".join(lines)
