"""What to ask where the columns of a file do not say what they hold: what could be which, and a line that has been tried."""

from collections.abc import Callable
from typing import Any

from elastic_core.data.reading.column_roles import ENOUGH, FILLED, NAMES, NEEDED, PERSON_NAME, Choice
from elastic_core.data.reading.raw_table import RawTable
from elastic_core.data.reading.time_columns import ORDERS, Undecided
from elastic_core.errors import InputError
from elastic_core.text import shell_command

SPOKEN = {"user": "person", "item": "item", "time": "time"}


def ask_columns(table: RawTable, choice: Choice, read: Callable[[RawTable, Choice], Any]) -> str:
    """Return one sentence for the command line: what is missing, and which line reads the file. `read` is how that is tried."""
    if refusal := explain_refusal(table, choice):
        return refusal + " (--columns user=NAME)" * refusal.endswith("holds people")
    return f"{describe_missing(table, choice)}: {_suggest_line(table, choice, read)}"


def describe_missing(table: RawTable, choice: Choice) -> str:
    """Return which roles no column has for certain, and which columns could have them."""
    names = list(table.sample.column_names)
    if refusal := explain_refusal(table, choice):
        return refusal
    if not table.headed:
        cells = ", ".join(f"{at} = {str(table.sample[name][0].as_py())[:24]!r}" for at, name in enumerate(names[:12], 1))
        return f"{table.label} does not name its columns ({cells})"
    parts, rejected = list[str](), f" ({'; '.join(choice.rejected[:2])})" if choice.rejected else ""
    for ours in choice.missing:
        could_be = [f"{one.name[:40]} ({one.summary})" for one in choice.candidates[ours]]
        if could_be:
            parts.append(f"the {SPOKEN[ours]} could be {' or '.join(could_be[:2])}")
        elif ours == "time":
            parts.append(f"no column holds times that order a person's events{rejected}")
        else:
            parts.append(f"no column looks like the {SPOKEN[ours]}")
    if not any(choice.candidates.values()):
        parts.append(f"the columns are {', '.join(name[:30] for name in names[:10])}")
    missing_roles = " and the ".join(SPOKEN[ours] for ours in choice.missing)
    return f"{table.label} does not say which column is the {missing_roles}; {'; '.join(parts)}"


def explain_refusal(table: RawTable, choice: Choice) -> str:
    """Return why a table cannot be a recommender's data, whatever its columns are called; nothing where it may be."""
    if not table.headed and table.sample.num_columns > 20:
        return (
            f"{table.label} has {table.sample.num_columns} columns without names, as a table of a row a person and a column an "
            "item has: write a row for every event, as in user,item,time"
        )
    if "user" not in choice.missing or not table.headed or len(table.sample) < ENOUGH:
        return ""
    users = choice.candidates["user"]
    if choice.heading and not any(PERSON_NAME.search(one.name) for one in users):
        return (
            f"{table.label} is a report in groups, whose names stand in {choice.heading!r} on lines of their own: "
            "export it as a plain list, with the person on the row of every event"
        )
    for one in choice.unfit:
        if one.stands_once and one.key in NAMES["user"]:
            return (
                f"{table.label} has one row for each {one.name!r}, and a history needs several: "
                "give the table with a row for every event of a person"
            )
        if 0.1 < one.filled < FILLED and (users or one.key in NAMES["user"]):
            return (
                f"{table.label} has nothing in {one.name!r} on {1 - one.filled:.0%} of the rows, and at most a tenth may be left "
                "out: take these rows out of the file"
            )
    items = [choice.roles["item"]] if "item" in choice.roles else [one.name for one in choice.candidates.get("item", [])]
    if any(PERSON_NAME.search(one.name) or (items and one.name != items[0]) for one in users):
        return ""
    return (
        f"{table.label} has no column of people, so it seems to hold one person's own history, or events without the people "
        "whose they are: recommendations need the histories of many; join the exports of several people into one file, or this "
        "table to that of its people, with a column for the person, or say which column holds people"
    )


def _suggest_line(table: RawTable, choice: Choice, read: Callable[[RawTable, Choice], Any]) -> str:
    """Return the line with the likeliest columns if the file can be read so; else what to say in general."""
    if choice.missing == ["time"] and not choice.candidates["time"]:
        return "say --columns time= if the rows are in order of time, or which column is the time with --columns time=NAME"
    general = "say which is which, as in --columns user=NAME,item=NAME,time=NAME"
    if not table.headed:
        general = general.replace("which,", "which by their places,").replace("NAME", "PLACE")
    likely = {ours: candidates[0].name for ours, candidates in choice.candidates.items() if candidates} | choice.roles
    columns = {ours: likely.get(ours, "") for ours in NEEDED}
    if not (columns["user"] and columns["item"]):
        return general
    names = list(table.sample.column_names)
    plain = table.headed and not set(",='\"") & set("".join(columns.values()))
    line = shell_command(
        ",".join(f"{ours}={name if plain or not name else names.index(name) + 1}" for ours, name in columns.items())
    )
    dates, again = "", RawTable(table.files, columns, names=table.names)
    try:
        counts = read(again, again.choose()).events["user"].value_counts()
        if len(counts) < 2 or counts.iloc[0] < 3:
            return general
    except Undecided:
        dates = f" --dates {ORDERS[0]} (or {ORDERS[1]})"
    except InputError as error:
        return f"{general} (with {line} it is refused: {str(error).removeprefix(table.label).strip(' ,')})"
    return f"try --columns {line}{dates}" if columns["time"] else f"if its rows are in order of time, try --columns {line}"
