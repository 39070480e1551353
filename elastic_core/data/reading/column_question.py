"""What to ask where the columns of a file do not say what they hold: what could be which, and a line that has been tried."""

from collections.abc import Callable
from typing import Any

from elastic_core.data.reading.column_roles import ENOUGH, FILLED, NEEDED, PERSON, Choice
from elastic_core.data.reading.raw_table import RawTable
from elastic_core.data.reading.time_columns import ORDERS, Undecided
from elastic_core.errors import InputError
from elastic_core.text import shell_command

SPOKEN = {"user": "person", "item": "item", "time": "time"}


def ask_columns(table: RawTable, choice: Choice, read: Callable[[RawTable, Choice], Any]) -> str:
    """Return one sentence for the command line: what is missing, and which line reads the file. `read` is how that is tried."""
    sentence = describe_missing(table, choice)
    return sentence if says_why_not(table, choice) else f"{sentence}: {_suggest_line(table, choice, read)}"


def describe_missing(table: RawTable, choice: Choice) -> str:
    """Return which roles no column has for certain, and which columns could have them."""
    names = list(table.sample.column_names)
    if why_not := says_why_not(table, choice):
        return why_not
    if not table.headed:
        cells = ", ".join(f"{at} = {str(table.sample[name][0].as_py())[:24]!r}" for at, name in enumerate(names[:12], 1))
        return f"{table.shown} does not name its columns ({cells})"
    parts, why_not = list[str](), f" ({'; '.join(choice.rejected[:2])})" if choice.rejected else ""
    for ours in choice.missing:
        could_be = [f"{one.name[:40]} ({one.summary})" for one in choice.candidates[ours]]
        if could_be:
            parts.append(f"the {SPOKEN[ours]} could be {' or '.join(could_be[:2])}")
        elif ours == "time":
            parts.append(f"no column holds times that order a person's events{why_not}")
        else:
            parts.append(f"no column looks like the {SPOKEN[ours]}")
    if all(not choice.candidates[ours] for ours in choice.missing if ours != "time"):
        parts.append(f"the columns are {', '.join(name[:30] for name in names[:10])}")
    missing_roles = " and the ".join(SPOKEN[ours] for ours in choice.missing)
    return f"{table.shown} does not say which column is the {missing_roles}; {'; '.join(parts)}"


def says_why_not(table: RawTable, choice: Choice) -> str:
    """Return why a table cannot be a recommender's data, whatever its columns are called; nothing where it may be."""
    if "user" not in choice.missing or not table.headed or len(table.sample) < ENOUGH:
        return ""
    people = choice.candidates["user"]
    if not any(PERSON.search(one.name) for one in people):
        for one in choice.unfit:
            if one.stands_once:
                return (
                    f"{table.shown} has one row for each {one.name!r}, and a history needs several: "
                    "give the table with a row for every event of a person"
                )
            if 0.1 < one.filled < FILLED:
                return (
                    f"{table.shown} does not say whose event it is on {1 - one.filled:.0%} of the rows, where {one.name!r} is "
                    "empty, and at most a tenth may be left out: take these rows out of the file"
                )
    items = [choice.roles["item"]] if "item" in choice.roles else [one.name for one in choice.candidates.get("item", [])]
    if any(PERSON.search(one.name) or (items and one.name != items[0]) for one in people):
        return ""
    return (
        f"{table.shown} names no person, so it seems to hold one person's own history, or events without the people whose they "
        "are: a list for somebody needs other people's histories too; join the exports of several people into one file, or this "
        "table to that of its people, with a column for the person"
    )


def _suggest_line(table: RawTable, choice: Choice, read: Callable[[RawTable, Choice], Any]) -> str:
    """Return the line with the likeliest columns if the file can be read so; else what to say in general."""
    if choice.missing == ["time"] and not choice.candidates["time"]:
        return "say --columns time= if the rows are in order of time, or which column is the time with --columns time=NAME"
    general = "say which is which, as in --columns user=NAME,item=NAME,time=NAME"
    if not table.headed:
        general = general.replace("which,", "which by their places,").replace("NAME", "PLACE")
    likely = {ours: one[0].name for ours, one in choice.candidates.items() if one} | choice.roles
    columns = {ours: likely.get(ours, "") for ours in NEEDED}
    if not (columns["user"] and columns["item"]):
        return general
    dates, again = "", RawTable(table.files, columns, names=table.names)
    try:
        counts = read(again, again.choose()).events["user"].value_counts()
        if len(counts) < 2 or counts.iloc[0] < 3:
            return general
    except Undecided:
        dates = f" --dates {ORDERS[0]} (or {ORDERS[1]})"
    except InputError:
        return general
    names = list(table.sample.column_names)
    plain = table.headed and not set(",='\"") & set("".join(columns.values()))
    line = shell_command(
        ",".join(f"{ours}={name if plain or not name else names.index(name) + 1}" for ours, name in columns.items())
    )
    return f"try --columns {line}{dates}" if columns["time"] else f"if its rows are in order of time, try --columns {line}"
