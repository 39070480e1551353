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

from elastic_core.data.reading.cell_text import Spellings, clean_cell, hold_lists, share_matching, split_lists, to_text
from elastic_core.data.reading.time_columns import NONE, Times, Undecided, read_clocks
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
PERSON_NAME = re.compile(  # one of them: a column of `visitors` counts them
    r"(?i)(user|customer|client|buyer|member|visitor|account|profile|person|e-?mail|reader|player|listener|patron|borrower|guest"
    r"|student|learner|viewer|subscriber|shopper|contact|patient|donor|passenger|employee|party)(?!s)"
)
ITEM_NAME = re.compile(
    r"(?i)item|product|title|track|song|movie|film|episode|article|artist|listing|book|game|page|video|content|show|url|sku|asin|isbn"
)
LIKELY = {"user": PERSON_NAME, "item": ITEM_NAME}
CODE_NAME = re.compile(r"(?i)sku|asin|isbn|code|number|mail|(?:^|[^a-z])id$|(?-i:[a-z]I[dD]$)")
AMOUNT_NAME = re.compile(
    r"(?i)price|quantity|qty|amount|total|tax|cost|rating|score|count(?!ry)|duration|played|length|^ms|number.?of|views"
)
GROUP_NAME = re.compile(r"(?i)order|transaction|receipt|invoice|basket|session")  # of events of one person
KIND_NAME = re.compile(r"(?i)station|store|branch|region|department|categor|brand|channel|campaign|status|type|source|topic")
SCENE_NAME = re.compile(r"(?i)(?:^|[^a-z])ip(?:$|[^a-z])|address|agent|browser|device|city|country|zip|phone|referr|currency")
LATER = tuple(  # words of what happens before or after an event begin so
    "due limit estimat deliver ship fulfil expir releas publish birth born updat modif upload load sent receiv return end stop "
    "login signup regist etl sync export".split()
)
CLOCK_NAME = re.compile(r"(?i)time|clock|hour|uhr|zeit|zet|hora|heure|hm")
HOUR_NAME = re.compile(r"(?i)hour|uhr|hora|heure|stunde|^h$")
LISTED_IDS = r"^(B[0-9A-Z]{9}|[0-9]{9}[0-9X])$", r"^A[0-9A-Z]{9,20}$"  # of Amazon's items and people
KINDS = ("nothing", "order", "clock", "year", "day", "moment")  # what the values of a column can tell of a time, least first
NOTHING, ORDER, CLOCK, YEAR, DAY, MOMENT = range(6)
IN_ORDER = ("time", "")  # of a choice: there are no times, the rows are in order
FILLED, ENOUGH, FEW, YEAR_LONG = 0.9, 50, 10, 366 * 86_400


class ColumnProfile:
    """What the rows of a sample say about one column."""

    def __init__(self, name: str, cells: Any) -> None:
        self.name, self.cells, self.key = name, cells, usual_key(name)
        self.words = set(re.findall(r"[a-z]+", re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name).lower()))

    @cached_property
    def codes(self) -> ndarray:
        """int [rows]: the place of each cell among the different ones, -1 where nothing is said."""
        spellings = Spellings()
        places = spellings.add(self.cells)
        codes, _ = pd.factorize(np.array([clean_cell(text) or None for text in spellings.texts], dtype=object))
        return np.asarray(codes[places])

    @cached_property
    def counts(self) -> ndarray:
        """int [different values]: how many rows have each."""
        return np.bincount(self.codes[self.codes >= 0], minlength=1)

    @property
    def filled(self) -> float:
        return float((self.codes >= 0).mean()) if len(self.codes) else 0.0

    @cached_property
    def kind(self) -> int:
        return find_time_kind(self.cells)

    @cached_property
    def holds_lists(self) -> bool:
        return hold_lists(self.cells)

    @cached_property
    def is_written(self) -> bool:
        """Whether most cells are dates in words or digits with marks between them, as nothing but a time is."""
        marks = r"\d[-/:年 ]\s?\d|\d\.\s?\d+\.\s?\d|\d\s?[A-Za-z]{3}"
        return pa.types.is_temporal(self.cells.type) or share_matching(self.cells.slice(0, 200), marks) > 0.8

    @property
    def is_timely(self) -> bool:
        return bool(self.words & TIME_WORDS) or self.is_written

    @property
    def is_later(self) -> bool:
        """Whether this is called a time before or after the event: when it was due, shipped, updated or received."""
        return any(word.startswith(LATER) for word in self.words)

    @cached_property
    def is_id(self) -> bool:
        """Whether the values could be ids: filled in, not constant, no numbers with a fraction. A few rows tell little."""
        filled, values = (FILLED, 2) if len(self.codes) >= ENOUGH else (1e-9, 1)
        fraction = self.key not in KNOWN and share_matching(self.cells.slice(0, 1_000), r"^-?\d+\.\d*[1-9]\d*$") > 0.5
        nested = pa.types.is_nested(self.cells.type)
        return self.holds_lists or not (nested or fraction or self.filled < filled or len(self.counts) < values)

    @property
    def stands_once(self) -> bool:
        """Whether every row has a value of its own, in a table that is long enough to tell."""
        return len(self.codes) >= 2 * ENOUGH and len(self.counts) >= (self.codes >= 0).sum()

    @property
    def comes_again(self) -> bool:
        """Whether most rows hold a value of several rows, and no value holds half of them."""
        rows = max(len(self.codes), 1)
        return self.counts[self.counts > 1].sum() > rows / 2 and (self.counts.max() <= rows / 2 or len(self.counts) < 6)

    @property
    def are_many(self) -> bool:
        """Whether the values are many enough for people or things, of whose kinds there are few. A few rows tell little."""
        return len(self.codes) < 2 * ENOUGH or self.holds_lists or len(self.counts) > FEW

    @property
    def names_things(self) -> bool:
        return self.holds_lists or (self.are_many and not self.stands_once)

    def follows_from(self, other: "ColumnProfile") -> bool:
        """Whether the other's values, of which at least five have several rows, have one value of this in nearly all of them."""
        pairs = pd.DataFrame({"other": other.codes, "own": self.codes})[(self.codes >= 0) & (other.codes >= 0)]
        groups = pairs.groupby("other")["own"]
        several = groups.nunique()[groups.size() > 1]
        return len(several) >= 5 and float((several > 1).mean()) < 0.02

    def is_trait_of(self, other: "ColumnProfile") -> bool:
        """Whether one value of the other, of which there are as many or more, always has one value of this."""
        return self is not other and len(self.counts) <= len(other.counts) < len(other.codes) and self.follows_from(other)

    @property
    def counts_moments(self) -> bool:
        """Whether these are numbers as moments are: close together beside their size, but over a day and more."""
        numbers = pd.to_numeric(pd.Series(to_text(self.cells).to_pylist()), errors="coerce")
        named = any(pattern.search(self.name) for pattern in (CODE_NAME, PERSON_NAME, ITEM_NAME))
        return not named and 5e-5 < (numbers.max() - numbers.min()) / max(numbers.median(), 1) < 0.3

    @property
    def summary(self) -> str:
        filled, rows = int(self.counts.sum()), len(self.codes)
        values = "one value" if len(self.counts) == 1 else f"{len(self.counts):,} values"
        return f"{values} in the first {rows:,} rows" + (f", {rows - filled:,} of them empty" if filled < rows else "")


Profiles = dict[str, ColumnProfile]


class Choice(NamedTuple):
    """`roles`: user, item, time ("" where the rows are in order), clock, title, genres → column, and `why`; `candidates` of what
    is missing."""

    roles: dict[str, str]
    why: dict[str, str]
    candidates: dict[str, list[ColumnProfile]] = {}  # noqa: RUF012
    rejected: tuple[str, ...] = ()  # why columns that are called a time are none
    unfit: tuple[ColumnProfile, ...] = ()  # columns that are called a person or an item, and whose values are none
    heading: str = ""  # a column that is filled in on lines without an event, above those of a person

    @property
    def missing(self) -> list[str]:
        return [ours for ours in NEEDED if ours not in self.roles]


def choose_columns(sample: Any, mapping: Mapping[str, str], label: str, headed: bool) -> Choice:
    """Return which column of the sample's is what. Raises InputError where one that was said is not there."""
    names = list(sample.column_names)
    roles = {ours: _find_column(name, names, ours, label) for ours, name in mapping.items()}
    needed = [roles[ours] for ours in NEEDED if ours in roles]
    if len({*needed}) < len(needed):
        name = max(needed, key=needed.count)
        raise InputError(f"the column {name!r} cannot be two things at once: choose another for one of them")
    profiles = {name: ColumnProfile(name, sample[name]) for name in names}
    why, rejected = dict.fromkeys(roles, "as you said"), list[str]()
    if headed:
        _choose_named(profiles, roles, why)
        rejected = _choose_time(profiles, roles, why) if "time" not in roles else []
    elif not roles:
        roles = _choose_by_place(list(profiles.values()))
        why = dict.fromkeys(roles, "by its place: the file names no columns")
    if "item" in roles and profiles[roles["item"]].holds_lists:
        roles.setdefault("time", "")
    _add_clock(profiles, roles, why)
    choice = Choice(roles, why, rejected=tuple(rejected))
    if not choice.missing:
        return choice
    candidates = _find_candidates(profiles, roles)
    named = {ours: any(likely.search(one.name) for one in candidates.get(ours, ())) for ours, likely in LIKELY.items()}
    unfit = [one for ours in choice.missing if not named.get(ours, True) for one in profiles.values() if one.key in NAMES[ours]]
    dated = profiles[roles["time"]].codes >= 0 if roles.get("time") else np.ones(len(sample), bool)
    headings = [one.name for one in profiles.values() if 0 < one.filled < 0.5 and not (dated & (one.codes >= 0)).any()]
    return choice._replace(candidates=candidates, unfit=tuple(unfit), heading="".join(headings[:1]))


def _find_column(name: str, names: list[str], ours: str, label: str) -> str:
    if ours not in ROLES:
        raise InputError(f"data.columns maps {ours!r}, which is none of {', '.join(ROLES)}")
    if name in names or (ours, name) == IN_ORDER:
        return name
    if name.isdecimal() and 1 <= int(name) <= len(names):
        return names[int(name) - 1]
    raise InputError(f"{label} has no column {name!r} (for {ours}); it has: {', '.join(names[:30])}")


# --- names that are certain, where the values agree ------------------------------------------------------------------


def _choose_named(profiles: Profiles, roles: dict[str, str], why: dict[str, str]) -> None:
    """Add user, item, title and genres: the first certain name whose values could be that."""
    lists = any(one.holds_lists for one in profiles.values())
    crowd = any(PERSON_NAME.search(one.name) and one.is_id and one.are_many for one in profiles.values())
    stock = any(ITEM_NAME.search(one.name) and one.is_id and one.names_things for one in profiles.values())

    def could_be(ours: str, one: ColumnProfile) -> bool:
        if ours == "user":  # few are who served the many
            return one.is_id and (lists or not one.stands_once) and (one.are_many or not crowd)
        beside = lists and not one.holds_lists and _stands_once(profiles, roles)
        small = one.key in PLAIN_ITEMS and not stock
        return ours != "item" or (one.is_id and (one.names_things or small) and not beside)

    for ours in ("user", "item", "title", "genres"):
        columns = [one for one in profiles.values() if one.key in NAMES[ours] and one.name not in roles.values()]
        columns.sort(key=lambda one: (ours not in LIKELY and one.filled <= 0.5, NAMES[ours].index(one.key)))
        fits = [one for one in columns if could_be(ours, one)]
        if ours in roles or not fits:
            continue
        roles[ours], why[ours] = fits[0].name, "by its name"
        for other in [one for one in columns if one is not fits[0]][:1] if ours in LIKELY else ():
            why[ours] += f", before {other.name!r}" if other in fits else f"; {other.name!r} has {other.summary}"


def _choose_time(profiles: Profiles, roles: dict[str, str], why: dict[str, str]) -> list[str]:
    """Add the time, where one column could order the events of a person; return why others could not."""
    free = [one for one in profiles.values() if one.name not in roles.values()]
    named = [one for one in free if one.key in NAMES["time"]]
    named.sort(key=lambda one: (-one.kind, NAMES["time"].index(one.key)))
    others = [one for one in free if one not in named and one.is_timely]
    owners = _find_owners(profiles, roles)
    reasons = {one.name: _explain_no_time(one, owners) for one in (*named, *others)}
    ranked = [one for one in named if not reasons[one.name]]
    fits = [one for one in others if not reasons[one.name]]
    fits = [one for one in fits if not one.is_later] or fits  # names break a tie
    if not ranked and len(fits) == 1:
        ranked = fits
    if not ranked and not fits:  # what is wrong with its cells is said when they are read
        ranked = [one for one in named if one.kind == YEAR or (one.kind == NOTHING and one.key in COUNTERS and one.filled > 0)]
    if ranked:
        roles["time"] = ranked[0].name
        why["time"] = "by its name" if ranked[0].kind == NOTHING else f"its values tell a {KINDS[ranked[0].kind]}"
        if len(ranked) > 1:
            why["time"] += f", more than {ranked[1].name!r}"
    return [f"{name!r} {reason}" for name, reason in reasons.items() if reason]


def _stands_once(profiles: Profiles, roles: Mapping[str, str]) -> bool:
    """Whether each person has one row: where lists stand in it, an item beside them is the one that came last."""
    return "user" in roles and len(profiles[roles["user"]].counts) == len(profiles[roles["user"]].codes)


def _find_owners(profiles: Profiles, roles: Mapping[str, str]) -> dict[str, ColumnProfile]:
    """Return the columns whose values have several events each: of people and of items, a row an event."""
    columns = {ours: profiles[roles[ours]] for ours in LIKELY if ours in roles}
    return {ours: one for ours, one in columns.items() if not one.holds_lists}


def _explain_no_time(one: ColumnProfile, owners: dict[str, ColumnProfile]) -> str:
    """Return why a column cannot order the events of a person; nothing where it can."""
    if one.filled < 0.5:
        return f"is empty on {1 - one.filled:.0%} of the rows"
    counts = one.kind == ORDER or (one.kind == CLOCK and not one.is_written)  # 1830 may be a clock or a count
    if one.kind < DAY and not (counts and one.key in COUNTERS):
        return "tells only the year or month" if one.kind == YEAR else "holds no moments"
    if one.holds_lists or len(one.codes) < ENOUGH:
        return ""
    if len(one.counts) == 1:
        return "is the same on every row"
    whose = [ours for ours, owner in owners.items() if one.follows_from(owner)]
    return f"has one value for every {'person' if whose[0] == 'user' else 'item'}" if whose else ""


# --- columns without names --------------------------------------------------------------------------------------------


def _choose_by_place(columns: list[ColumnProfile]) -> dict[str, str]:
    """Return user and item; user, item, time; and these with ratings and the like between them."""
    timed, rows = len(columns) > 2, len(columns[0].codes)
    few = [len(one.counts) <= max(2, min(20, rows // 20)) for one in columns]
    small = timed and any(few[:2]) and rows > 40
    times = [False] * (len(columns) - 1) + [timed]
    if len(columns) < 2 or small or not all(few[2:-1]) or [one.kind >= DAY for one in columns] != times:
        return {}
    turned = all(share_matching(one.cells, form) > 0.9 for one, form in zip(columns, LISTED_IDS, strict=False))
    user, item = columns[1::-1] if turned else columns[:2]
    return {"user": user.name, "item": item.name, "time": columns[-1].name if timed else ""}


# --- what to ask -------------------------------------------------------------------------------------------------------


def _find_candidates(profiles: Profiles, roles: dict[str, str]) -> dict[str, list[ColumnProfile]]:
    """Return the columns that each missing role could be, the likeliest first."""
    likely = {ours: name for ours, name in roles.items() if ours != "title"}
    free = [one for one in profiles.values() if one.name not in likely.values() and one.is_id]
    times = [one for one in free if one.kind >= DAY and (one.is_timely or one.counts_moments or not roles)]
    ids = [one for one in free if one not in times and not (one.kind >= ORDER and one.is_written)]
    result = dict[str, list[ColumnProfile]]()
    for ours in [ours for ours in NEEDED if ours not in roles]:
        owners = _find_owners(profiles, likely)
        if ours == "user":
            unshared = any(profiles[roles[each]].stands_once for each in ("item", "title") if each in roles)
            others = [] if unshared else [*ids, *owners.values()]
            fits = [one for one in ids if _could_be_people(one, others, few_columns=len(profiles) < 4)]
            fits.sort(key=lambda one: (not PERSON_NAME.search(one.name), not one.are_many, not CODE_NAME.search(one.name)))
        elif ours == "item":
            fits = [one for one in ids if one.name != likely.get("user") and _could_be_things(one, owners.get("user"))]
            if _stands_once(profiles, likely):
                fits = [one for one in fits if one.holds_lists] or fits
            fits.sort(key=lambda one: (not ITEM_NAME.search(one.name), not one.comes_again, not CODE_NAME.search(one.name)))
        else:
            fits = [one for one in times if not _explain_no_time(one, owners)]
            fits.sort(key=lambda one: (not one.is_written, one.is_later))
        result[ours] = fits[:3]
        if fits:
            likely[ours] = fits[0].name
    return result


def _could_be_people(one: ColumnProfile, others: list[ColumnProfile], few_columns: bool) -> bool:
    """Whether a column could hold people; one that is called so, or an id (of `others`) that is no trait of another."""
    if not one.comes_again or len(one.counts) == 1:
        return False
    if PERSON_NAME.search(one.name):
        return one.are_many or bool(CODE_NAME.search(one.name) or "name" in one.words)  # a household, not a kind of customer
    if re.fullmatch(r"column \d+", one.name):
        return one.are_many
    no_name = any(pattern.search(one.name) for pattern in (AMOUNT_NAME, GROUP_NAME, SCENE_NAME, KIND_NAME, ITEM_NAME))
    counts = not (few_columns or CODE_NAME.search(one.name) or share_matching(one.cells, r"^-?[0-9.]+$") < 0.5)
    return one.are_many and bool(others) and not (no_name or counts or any(one.is_trait_of(other) for other in others))


def _could_be_things(one: ColumnProfile, user: ColumnProfile | None) -> bool:
    no_name = any(pattern.search(one.name) for pattern in (PERSON_NAME, GROUP_NAME, SCENE_NAME))
    apart = user is not None and (one.is_trait_of(user) or user.follows_from(one))  # of one person alone, as an order is
    named = not no_name or bool(ITEM_NAME.search(one.name))
    return one.names_things and named and not AMOUNT_NAME.search(one.name) and not apart


# --- what values tell of a time ----------------------------------------------------------------------------------------


def _add_clock(profiles: Profiles, roles: dict[str, str], why: dict[str, str]) -> None:
    """A date and a clock in two columns are one time."""
    if not roles.get("time") or profiles[roles["time"]].kind != DAY:
        return
    free = [one for one in profiles.values() if one.name not in roles.values() and CLOCK_NAME.search(one.name)]
    clocks = [one for one in free if _is_clock(one.cells, bool(HOUR_NAME.search(one.name)))]
    minutes = any(re.search("(?i)^min", name) for name in profiles)
    if len(clocks) == 1 and not (HOUR_NAME.search(clocks[0].name) and minutes):
        roles["clock"] = clocks[0].name
        why["time"] = f"the day, with the clock of {clocks[0].name!r}"


def find_time_kind(column: Any) -> int:
    """Return the place in KINDS: what the values can tell of a time. (A few rows speak for all.)"""
    cells = column.slice(0, 2_000)
    if pa.types.is_nested(cells.type) or pa.types.is_boolean(cells.type):
        return NOTHING
    if hold_lists(cells):
        return MOMENT if find_time_kind(pc.list_element(split_lists(cells), 0)) >= DAY else NOTHING
    times, wrong = Times(), dict[int, str]()
    times.add(cells)
    try:
        seconds = times.finish("", [], wrong)
    except Undecided:
        return DAY if not any(":" in str(text) for text in cells.slice(0, 50).to_pylist()) else MOMENT
    except InputError:
        return YEAR
    filled = len(cells) - list(wrong.values()).count(NONE)
    values = np.delete(seconds.astype(np.float64), list(wrong))
    if len(values) < 0.5 * max(1, filled) or not len(values):
        return CLOCK if _is_clock(cells) else NOTHING
    if not EARLY <= np.median(values) <= min(LATE, datetime.now(UTC).timestamp() + YEAR_LONG):
        return CLOCK if len(values) > 20 and values.max() < 240_000 and _is_clock(cells) else ORDER
    return DAY if (values % 86_400 == values[0] % 86_400).all() else MOMENT


def _is_clock(column: Any, hours: bool = False) -> bool:
    texts = [text for text in pc.cast(column.slice(0, 1_000), pa.string()).to_pylist() if clean_cell(text)]
    looks_like_clock = hours or all(":" in text for text in texts) or (bool(texts) and max(map(len, texts)) > 2)
    return bool(texts) and looks_like_clock and bool(np.isfinite(read_clocks(texts)).mean() > 0.95)


# --- names -------------------------------------------------------------------------------------------------------------


def is_usual(name: str) -> bool:
    return usual_key(name) in KNOWN


def usual_key(name: str) -> str:
    """Return the certain name that a column's name is a spelling of, or its letters and digits."""
    letters, tail = (re.sub(r"[^0-9a-z]", "", part.lower()) for part in (name, name.rsplit(".", 1)[-1]))
    turned = letters[2:] + "id" if re.match("(?i)id[^a-z]|id(?=[A-Z])", name) else letters  # id_game
    singular = letters if letters[:-1] in NAMES["user"] else letters.removesuffix("s")  # users are counts, items are lists
    return next((form for form in (letters, tail, singular, turned) if form in KNOWN), letters)
