"""Which column holds what.

A short list of names is certain where the values agree: an id is filled in and comes again, a time could order the events of a
person. Nothing else is taken: the question that is asked instead shows the columns whose values would allow it.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy import ndarray

from elastic_core.data.reading.cell_text import Spellings, clean_cell, hold_lists, share, split
from elastic_core.data.reading.time_columns import NONE, Times, Undecided, clock
from elastic_core.data.reading.time_units import EARLY, LATE
from elastic_core.errors import InputError

ROLES = ("user", "item", "time", "title", "genres")
NEEDED = ROLES[:3]
NAMES = {  # certain, where the values agree; letters and digits only; an earlier one before a later one
    "user": """user userid uid useridx usersid userno usernum usernumber userhash visitorid visitor customeruniqueid
        customerid customer
        custid customerno customernumber reviewerid memberid accountid clientid person personid playerid listenerid
        readerid buyerid buyer buyerusername profileid householdkey msno login username usernick anonymousid distinctid
        userpseudoid steamid deviceid cookieid sessionid session sid usercode kunde kundeid kundennummer kundennr nutzer nutzerid
        benutzer benutzerid utilisateur cliente usuario u""".split(),
    "item": """itemid movieid parentasin asin productid iid songid trackid artistid videoid newsid articleid bookid titleid
        businessid venueid poiid placeid locationid gameid appid animeid recipeid beerid showid contentid postid listingid
        pageid hotelid goodsid skuid productcode itemcode itemnumber sku stockcode gmapid aid mid pid mediaid filmid isbn
        item movie product video song track article book venue game sitem artikel artikelid artikelnummer artikelnr
        produkt produktid film articulo producto i""".split(),
    "time": """timestamp unixtimestamp timems timestampms ts unixreviewtime time datetime eventtime createdat createdtime
        date utctimestamp utctime localtime reviewtime collectortstamp eventtimestamp eventdate saledate orderdate
        purchasedate t""".split(),
    "title": "itemtitle movietitle producttitle booktitle title moviename itemname productname bookname name".split(),
    "genres": "genres genre tags categories category class".split(),
}  # fmt: skip
KNOWN = {key for keys in NAMES.values() for key in keys}
PLAIN_ITEMS = {"item", "itemid", "movieid", "productid"}  # also with few values
COUNTERS = {"timestamp", "ts", "time", "t"}  # may hold plain numbers that only order the rows
TIME_WORDS = set(
    "time times date datetime timestamp tstamp stamp ts dt at day when created utc uts datum zeit fecha hora uhrzeit".split()
)
PERSON = re.compile(
    r"(?i)user|customer|client|buyer|member|visitor|account|profile|person|e-?mail|reader|player|listener|patron|borrower|guest"
    r"|student|learner|viewer|subscriber|shopper|contact|patient|donor|passenger|employee"
)
THING = re.compile(
    r"(?i)item|product|title|track|song|movie|film|article|listing|book|game|page|video|content|show|url|sku|asin|isbn"
)
CODE = re.compile(r"(?i)sku|asin|isbn|code|number|(?:^|[^a-z])id$|(?-i:[a-z]I[dD]$)")
MEASURE = re.compile(
    r"(?i)order|transaction|event.?(?:id|type|name)|price|quantity|amount|total|tax|cost|rating|score|count|duration|played|length|^ms"
)
LATER = tuple(  # words of what happens before or after an event begin so
    "due limit estimat deliver ship fulfil expir releas publish birth born updat modif upload load sent receiv return end stop "
    "login signup regist etl sync export".split()
)
CLOCK_NAME = re.compile(r"(?i)time|clock|hour|uhr|zeit|zet|hora|heure|hm")
HOUR_NAME = re.compile(r"(?i)hour|uhr|hora|heure|stunde|^h$")
KINDS = ("nothing", "order", "clock", "year", "day", "moment")  # what the values of a column can tell of a time, least first
NOTHING, ORDER, CLOCK, YEAR, DAY, MOMENT = range(6)
IN_ORDER = ("time", "")  # of a choice: there are no times, the rows are in order
FILLED, ENOUGH, FEW_ITEMS, YEAR_LONG = 0.9, 50, 10, 366 * 86_400


class ColumnProfile:
    """What the rows of a sample say about one column."""

    def __init__(self, name: str, cells: Any) -> None:
        self.name, self.cells, self.key = name, cells, usual_key(name)

    @cached_property
    def codes(self) -> ndarray:
        """int [rows]: the place of each cell among the different ones, -1 where nothing is said."""
        spellings = Spellings()
        places = spellings.numbers(self.cells)
        clean, _ = pd.factorize(np.array([clean_cell(text) or None for text in spellings.texts], dtype=object))
        return np.asarray(clean[places])

    @cached_property
    def counts(self) -> ndarray:
        """int [different values]: how many rows have each."""
        return np.bincount(self.codes[self.codes >= 0], minlength=1)

    @property
    def filled(self) -> float:
        return float((self.codes >= 0).mean()) if len(self.codes) else 0.0

    @cached_property
    def kind(self) -> int:
        return kind_of(self.cells)

    @cached_property
    def is_written(self) -> bool:
        """Whether most cells are dates in words or digits with marks between them, as nothing but a time is."""
        marks = r"\d[-/.:年 ]\s?\d|\d\s?[A-Za-z]{3}"
        return pa.types.is_temporal(self.cells.type) or share(self.cells.slice(0, 200), marks) > 0.8

    @property
    def is_id(self) -> bool:
        """Whether the values could be ids: filled in, not constant, no numbers with a fraction."""
        fraction = share(self.cells.slice(0, 1_000), r"^-?\d+\.\d*[1-9]\d*$") > 0.5 and self.key not in KNOWN
        if len(self.codes) < ENOUGH:  # a few rows tell nothing
            return not pa.types.is_nested(self.cells.type) and self.filled > 0 and not fraction
        return not pa.types.is_nested(self.cells.type) and self.filled >= FILLED and len(self.counts) > 1 and not fraction

    @property
    def stands_once(self) -> bool:
        """Whether every row has a value of its own, in a table that is long enough to tell."""
        return len(self.codes) >= 2 * ENOUGH and len(self.counts) >= (self.codes >= 0).sum()

    @property
    def comes_again(self) -> bool:
        """Whether most rows hold a value of several rows, and no value holds half of them."""
        rows = max(len(self.codes), 1)
        return self.counts[self.counts > 1].sum() > rows / 2 and (self.counts.max() <= rows / 2 or len(self.counts) < 6)

    def varies_within(self, other: "ColumnProfile") -> float | None:
        """Return in what share of the other's values with several rows this one has several values; None of fewer than five."""
        both = (self.codes >= 0) & (other.codes >= 0)
        groups, values = other.codes[both], self.codes[both]
        rows = np.bincount(groups, minlength=1)
        different = np.bincount(np.unique(groups * (len(self.counts) + 1) + values) // (len(self.counts) + 1), minlength=1)
        several = rows > 1
        return float((different[several] > 1).mean()) if several.sum() >= 5 else None

    @property
    def summary(self) -> str:
        values = "one value" if len(self.counts) == 1 else f"{len(self.counts):,} values"
        return f"{values} in {len(self.codes):,} rows"


class Choice(NamedTuple):
    """`roles`: user, item, time (and clock, title, genres) → column; `why` of each; `candidates` of what is missing."""

    roles: dict[str, str]
    why: dict[str, str]
    ordered: bool
    candidates: dict[str, list[ColumnProfile]] = {}  # noqa: RUF012
    rejected: tuple[str, ...] = ()  # why columns that are called a time are none
    unfit: tuple[ColumnProfile, ...] = ()  # columns that are called a person, and whose values are none

    @property
    def missing(self) -> list[str]:
        return [ours for ours in NEEDED if ours not in self.roles and not (ours == "time" and self.ordered)]


def choose(sample: Any, given: Mapping[str, str], shown: str, headed: bool) -> Choice:
    """Return which column of the sample's is what. Raises InputError where one that was said is not there."""
    names = list(sample.column_names)
    given_columns = {ours: _find_column(name, names, ours, shown) for ours, name in given.items() if (ours, name) != IN_ORDER}
    twice = [name for name in given_columns.values() if list(given_columns.values()).count(name) > 1]
    if twice:
        raise InputError(f"the column {twice[0]!r} cannot be two things at once: choose another for one of them")
    profiles = {name: ColumnProfile(name, sample[name]) for name in names}
    in_order = IN_ORDER in given.items()
    known_roles = {*given_columns, *(["time"] if in_order else [])}
    roles, why, rejected = dict(given_columns), dict.fromkeys(given_columns, "as you said"), list[str]()
    if headed:
        _choose_ids(profiles, roles, why, known_roles)
        if "time" not in known_roles:
            rejected = _choose_time(profiles, roles, why)
    elif not given_columns:
        roles, why = _choose_by_place(profiles)
        if in_order:
            roles.pop("time", None)
    _add_clock(profiles, roles, why)
    pairs_alone = not headed and len(names) == 2 and not given_columns
    holds_lists = "item" in roles and hold_lists(sample[roles["item"]])
    choice = Choice(roles, why, in_order or pairs_alone or ("time" not in roles and holds_lists), rejected=tuple(rejected))
    if not choice.missing:
        return choice
    unfit = tuple(one for one in profiles.values() if one.key in NAMES["user"] and one.name not in roles.values())
    return choice._replace(candidates=_find_candidates(profiles, choice), unfit=unfit)


def title_columns(sample: Any) -> dict[str, str]:
    """Return the columns for the item, its title and genres, of a table with a row an item: by their names alone."""
    keys, result = {name: usual_key(name) for name in sample.column_names}, dict[str, str]()
    for ours in ("item", "title", "genres"):
        named_columns = [name for name in keys if keys[name] in NAMES[ours] and name not in result.values()]
        if named_columns:
            result[ours] = min(named_columns, key=lambda name: NAMES[ours].index(keys[name]))
    return result


def _find_column(name: str, names: list[str], ours: str, shown: str) -> str:
    if ours not in ROLES:
        raise InputError(f"data.columns maps {ours!r}, which is none of {', '.join(ROLES)}")
    if name in names:
        return name
    if name.isdecimal() and 1 <= int(name) <= len(names):
        return names[int(name) - 1]
    raise InputError(f"{shown} has no column {name!r} (for {ours}); it has: {', '.join(names[:30])}")


# --- names that are certain, where the values agree ------------------------------------------------------------------


def _choose_ids(profiles: dict[str, ColumnProfile], roles: dict[str, str], why: dict[str, str], known_roles: set[str]) -> None:
    """Add user, item, title and genres: the first certain name whose values could be that."""
    for ours in ("user", "item", "title", "genres"):
        if ours in known_roles:
            continue
        named_columns = [one for one in profiles.values() if one.key in NAMES[ours] and one.name not in roles.values()]
        named_columns.sort(key=lambda one: NAMES[ours].index(one.key))
        fits = [one for one in named_columns if one.filled > 0.5] or named_columns
        if ours in ("user", "item"):
            fits = [one for one in named_columns if one.is_id or hold_lists(one.cells)]
        if ours == "user" and not any(hold_lists(one.cells) for one in profiles.values()):
            fits = [one for one in fits if not one.stands_once]
        if ours == "item":
            fits = [one for one in fits if one.key in PLAIN_ITEMS or _holds_things(one)]
        if fits:
            roles[ours], why[ours] = fits[0].name, "by its name"
            others = [one for one in named_columns if one is not fits[0]] if ours in ("user", "item") else []
            if others and others[0] in fits:
                why[ours] += f", before {others[0].name!r}"
            elif others:
                why[ours] += f"; {_why_not_id(others[0])}"


def _holds_things(one: ColumnProfile) -> bool:
    """Whether values are many enough for things (a kind of thing has few), and no value stands for its row alone."""
    return len(one.codes) < 2 * ENOUGH or hold_lists(one.cells) or (len(one.counts) > FEW_ITEMS and not one.stands_once)


def _why_not_id(one: ColumnProfile) -> str:
    if one.filled < FILLED:
        return f"{one.name!r} is empty on {1 - one.filled:.0%} of the rows"
    return f"{one.name!r} has {one.summary}"


def _choose_time(profiles: dict[str, ColumnProfile], roles: dict[str, str], why: dict[str, str]) -> list[str]:
    """Add the time, where one column could order the events of a person; return why others could not."""
    free = [one for one in profiles.values() if one.name not in roles.values()]
    user, item = (profiles.get(roles.get(ours, "")) for ours in ("user", "item"))
    named_columns = [one for one in free if one.key in NAMES["time"]]
    others = [one for one in free if one not in named_columns and (_words(one.name) & TIME_WORDS or one.is_written)]
    reasons = {one.name: _why_no_time(one, user, item, counter=one.key in COUNTERS) for one in [*named_columns, *others]}
    rejected = [f"{name!r} {reason}" for name, reason in reasons.items() if reason]
    ranked = [one for one in named_columns if not reasons[one.name]]
    ranked.sort(key=lambda one: (-one.kind, NAMES["time"].index(one.key)))
    fits = [one for one in others if not reasons[one.name]]
    if len(fits) > 1:  # names break a tie
        fits = [one for one in fits if not _is_later(one.name)] or fits
    if not ranked and len(fits) == 1:
        ranked = fits
    if not ranked and not fits:  # what is wrong with its cells is said when they are read
        ranked = [
            one for one in named_columns if one.kind == YEAR or (one.kind == NOTHING and one.key in COUNTERS and one.filled > 0)
        ]
    if ranked:
        roles["time"] = ranked[0].name
        why["time"] = f"its values tell a {KINDS[ranked[0].kind]}"
        if len(ranked) > 1:
            why["time"] += f", more than {ranked[1].name!r}"
    return rejected


def _why_no_time(one: ColumnProfile, user: ColumnProfile | None, item: ColumnProfile | None, counter: bool) -> str:
    """Return why a column cannot order the events of a person; nothing where it can."""
    if one.filled < 0.5:
        return f"is empty on {1 - one.filled:.0%} of the rows"
    counts = counter and (one.kind == ORDER or (one.kind == CLOCK and not one.is_written))  # 1830 may be a clock or a count
    if one.kind not in (DAY, MOMENT) and not counts:
        return "tells only the year or month" if one.kind == YEAR else "holds no moments"
    if hold_lists(one.cells):
        return ""
    if len(one.codes) < ENOUGH:
        return ""
    if len(one.counts) == 1:
        return "is the same on every row"
    for other, whom in ((user, "person"), (item, "item")):
        holds_lists = other is not None and hold_lists(other.cells)
        if other is not None and not holds_lists and (varying := one.varies_within(other)) is not None and varying < 0.02:
            return f"has one value for every {whom}"
    return ""


# --- columns without names --------------------------------------------------------------------------------------------


def _choose_by_place(profiles: dict[str, ColumnProfile]) -> tuple[dict[str, str], dict[str, str]]:
    """User and item; user, item, time; and these with ratings and the like between them."""
    columns = list(profiles.values())
    if len(columns) < 2:
        return {}, {}
    few = [len(one.counts) <= max(2, min(20, len(one.codes) // 20)) for one in columns]
    times = [at for at, one in enumerate(columns) if at > 1 and one.kind >= DAY]
    behaves = any({"pv", "fav", "cart", "buy"} & set(one.cells.slice(0, 500).to_pylist()) for one in columns)
    between = [at for at in range(2, len(columns)) if at not in times]
    if len(columns) > 2 and (len(times) != 1 or times[0] < len(columns) - 1 or not (behaves or all(few[at] for at in between))):
        return {}, {}
    small = (few[0] or few[1]) and len(columns) > 2 and len(columns[0].codes) > 40
    if columns[0].kind >= DAY or columns[1].kind >= DAY or small:
        return {}, {}
    user, item = columns[:2]
    if share(user.cells, r"^(B[0-9A-Z]{9}|[0-9]{9}[0-9X])$") > 0.9 and share(item.cells, r"^A[0-9A-Z]{9,20}$") > 0.9:
        user, item = item, user  # as Amazon's reviews have them
    roles = {"user": user.name, "item": item.name, **({"time": columns[times[0]].name} if times else {})}
    return roles, dict.fromkeys(roles, "by its place: the file names no columns")


# --- what to ask -------------------------------------------------------------------------------------------------------


def _find_candidates(profiles: dict[str, ColumnProfile], choice: Choice) -> dict[str, list[ColumnProfile]]:
    """Return the columns that each missing role could be, the likeliest first."""
    taken_names = {name for ours, name in choice.roles.items() if ours != "title"}
    user, item = (profiles.get(choice.roles.get(ours, "")) for ours in ("user", "item"))
    free = [one for one in profiles.values() if one.name not in taken_names and (one.is_id or hold_lists(one.cells))]
    times = [one for one in free if one.kind >= DAY and (one.is_written or _words(one.name) & TIME_WORDS or not choice.roles)]
    ids = [one for one in free if one not in times and not (one.kind >= ORDER and one.is_written)]
    every = [*ids, *filter(None, (user, item))]
    result = dict[str, list[ColumnProfile]]()
    if "user" in choice.missing:
        again = [one for one in ids if one.comes_again and len(one.counts) > 1]
        once = item is not None and len(item.counts) == len(item.codes)  # nothing is shared by people
        people = [
            one for one in again
            if PERSON.search(one.name) or not (once or MEASURE.search(one.name) or any(_is_trait(one, other) for other in every))
        ]  # fmt: skip
        result["user"] = sorted(people, key=lambda one: (not PERSON.search(one.name), not CODE.search(one.name)))[:3]
        user = result["user"][0] if result["user"] else None
    if "item" in choice.missing:
        things = [one for one in ids if one is not user and not (user and _is_trait(one, user)) and _could_be_things(one)]
        result["item"] = sorted(things, key=lambda one: -2 * bool(THING.search(one.name)) - bool(CODE.search(one.name)))[:3]
        item = result["item"][0] if result["item"] else None
    if "time" in choice.missing:
        fits = [one for one in times if not _why_no_time(one, user, item, counter=False)]
        result["time"] = sorted(fits, key=lambda one: _is_later(one.name))[:3]
    return result


def _could_be_things(one: ColumnProfile) -> bool:
    named_columns = THING.search(one.name) and not re.search("(?i)price|quantity", one.name)
    other = MEASURE.search(one.name) or PERSON.search(one.name)
    return (len(one.codes) < ENOUGH or _holds_things(one)) and bool(named_columns or not other)


def _is_trait(one: ColumnProfile, other: ColumnProfile) -> bool:
    """Whether one value of the other, of which there are as many or more, always has one value of this."""
    if one is other or len(other.counts) < len(one.counts) or len(other.counts) == len(other.codes):
        return False
    varying = one.varies_within(other)
    return varying is not None and varying < 0.02


# --- what values tell of a time ----------------------------------------------------------------------------------------


def _add_clock(profiles: dict[str, ColumnProfile], roles: dict[str, str], why: dict[str, str]) -> None:
    """A date and a clock in two columns are one time."""
    if "time" not in roles or profiles[roles["time"]].kind != DAY:
        return
    free = [one for one in profiles.values() if one.name not in roles.values() and CLOCK_NAME.search(one.name)]
    clocks = [one for one in free if _is_clock(one.cells, bool(HOUR_NAME.search(one.name)))]
    minutes = any(re.search("(?i)^min", name) for name in profiles)
    if len(clocks) == 1 and not (HOUR_NAME.search(clocks[0].name) and minutes):
        roles["clock"] = clocks[0].name
        why["time"] = f"the day, with the clock of {clocks[0].name!r}"


def kind_of(column: Any) -> int:
    """Return the place in KINDS: what the values can tell of a time. (A few rows speak for all.)"""
    some = column.slice(0, 2_000)
    if pa.types.is_nested(some.type) or pa.types.is_boolean(some.type):
        return NOTHING
    if hold_lists(some):
        return MOMENT if kind_of(pc.list_element(split(some), 0)) >= DAY else NOTHING
    times = Times()
    times.add(some)
    try:
        seconds, wrong = times.finish()
    except Undecided:
        return DAY if not any(":" in str(text) for text in some.slice(0, 50).to_pylist()) else MOMENT
    except InputError:
        return YEAR
    given_columns = len(some) - list(wrong.values()).count(NONE)
    values = np.delete(seconds.astype(np.float64), list(wrong))
    if len(values) < 0.5 * max(1, given_columns) or not len(values):
        return CLOCK if _is_clock(some) else NOTHING
    if not EARLY <= np.median(values) <= min(LATE, datetime.now(UTC).timestamp() + YEAR_LONG):
        return CLOCK if len(values) > 20 and values.max() < 240_000 and _is_clock(some) else ORDER
    return DAY if (values % 86_400 == values[0] % 86_400).all() else MOMENT


def _is_clock(column: Any, hours: bool = False) -> bool:
    texts = [text for text in pc.cast(column.slice(0, 1_000), pa.string()).to_pylist() if clean_cell(text)]
    looks_like_clock = hours or all(":" in text for text in texts) or (bool(texts) and max(map(len, texts)) > 2)
    return bool(texts) and looks_like_clock and bool(np.isfinite(clock(texts)).mean() > 0.95)


# --- names -------------------------------------------------------------------------------------------------------------


def is_usual(name: str) -> bool:
    return usual_key(name) in KNOWN


def usual_key(name: str) -> str:
    """Return the certain name that a column's name is a spelling of, or its letters and digits."""
    whole, tail = (re.sub(r"[^0-9a-z]", "", part.lower()) for part in (name, name.rsplit(".", 1)[-1]))
    turned = whole[2:] + "id" if re.match("(?i)id[^a-z]|id(?=[A-Z])", name) else whole  # id_game
    return next((form for form in (whole, tail, whole.removesuffix("s"), turned) if form in KNOWN), whole)


def _words(name: str) -> set[str]:
    """Return the words of a name: candidate_rank has none of a time."""
    return set(re.findall(r"[a-z]+", re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name).lower()))


def _is_later(name: str) -> bool:
    """Whether a name is one of a time before or after the event: when it was due, shipped, updated or received."""
    return any(word.startswith(LATER) for word in _words(name))
