"""Which column is what: by the name where one is usual, by its values where several could be, never silently."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elastic_core.data.reading.cells import clean_cell, hold_lists, share, spelt, split
from elastic_core.data.reading.times import NONE, Times, Undecided, clock
from elastic_core.data.reading.units import EARLY, LATE
from elastic_core.errors import InputError

ROLES = ("user", "item", "time", "title", "genres")
USUAL = {  # letters and digits only; the first that is there counts
    "user": """user userid uid useridx usersid userno usernum usernumber userhash visitorid visitor customerid customer
        custid customerno customernumber reviewerid memberid accountid clientid person personid playerid listenerid
        readerid buyerid author authorid profileid householdkey msno login username usernick deviceid cookieid
        sessionid session sid usercode kunde kundeid kundennummer kundennr userpseudoid nutzer nutzerid benutzer
        benutzerid utilisateur cliente usuario src u""".split(),
    "item": """itemid movieid parentasin asin productid iid songid trackid artistid videoid newsid articleid bookid isbn
        businessid venueid poiid placeid locationid gameid appid animeid recipeid beerid showid contentid postid
        pageid hotelid goodsid skuid productcode sku stockcode aid gmapid mid pid mediaid filmid item movie product
        video song track article book business venue game page url sitem artikel artikelid artikelnummer artikelnr itemcode
        produkt produktid film articulo producto target dst sid i""".split(),
    "time": """timestamp unixtimestamp timems timestampms ts unixreviewtime time datetime eventtime createdat createdtime
        date utctimestamp utctime localtime reviewtime tdat t""".split(),
    "title": "itemtitle movietitle producttitle booktitle title moviename itemname productname bookname name".split(),
    "genres": "genres genre tags categories category class".split(),
}
KNOWN = {key for keys in USUAL.values() for key in keys}
TIMELY = re.compile(r"(?i)time|date|stamp|_at$|_dt$|_ts$|^ts|when|datum|zeit|fecha|^t$|(?-i:[a-z]At$)")
CLOCKLIKE = re.compile(r"(?i)time|clock|hour|uhr|zeit|zet|hora|heure|hm")
HOURLY = re.compile(r"(?i)hour|uhr|hora|heure|stunde|^h$")
KINDS = ("nothing", "order", "clock", "year", "day", "moment")  # what the values of a column can tell of a time, least first
NOTHING, ORDER, CLOCK, YEAR, DAY, MOMENT = range(6)
IN_ORDER = ("time", "")  # of a choice: there are no times, the rows are in order


class Choice(NamedTuple):
    """`roles`: user, item, time (and clock, title, genres) → column; `why` of each; what is `missing`."""

    roles: dict[str, str]
    why: dict[str, str]
    ordered: bool

    @property
    def missing(self) -> list[str]:
        return [ours for ours in ("user", "item", "time") if ours not in self.roles and not (ours == "time" and self.ordered)]


def is_usual(name: str) -> bool:
    return usual_key(name) in KNOWN


def choose(sample: Any, given: Mapping[str, str], shown: str, headed: bool) -> Choice:
    """Return which column of the sample's is what. Raises InputError where one that was said is not there."""
    names = list(sample.column_names)
    said = {ours: _mapped_column(name, names, ours, shown) for ours, name in given.items() if (ours, name) != IN_ORDER}
    twice = [name for name in said.values() if list(said.values()).count(name) > 1]
    if twice:
        raise InputError(f"the column {twice[0]!r} cannot be two things at once: choose another for one of them")
    free = sample.select([name for name in names if name not in said.values()])
    ordered = IN_ORDER in given.items()
    roles, why = (_by_name if headed else _by_place)(free, {*said, *(["time"] if ordered else [])})
    why |= dict.fromkeys(said, "as you said")
    roles = (roles if headed or not said else {}) | said
    if ordered:
        roles.pop("time", None)
    _add_clock(sample, roles, why)
    two = not headed and len(names) == 2 and not said
    listed = "item" in roles and hold_lists(sample[roles["item"]])
    return Choice(roles, why, ordered or two or ("time" not in roles and listed))


def _mapped_column(name: str, names: list[str], ours: str, shown: str) -> str:
    if ours not in ROLES:
        raise InputError(f"data.columns maps {ours!r}, which is none of {', '.join(ROLES)}")
    if name in names:
        return name
    if name.isdecimal() and 1 <= int(name) <= len(names):
        return names[int(name) - 1]
    raise InputError(f"{shown} has no column {name!r} (for {ours}); it has: {', '.join(names[:30])}")


def _by_name(sample: Any, done: set[str]) -> tuple[dict[str, str], dict[str, str]]:
    keys, roles, why = {name: usual_key(name) for name in sample.column_names}, dict[str, str](), dict[str, str]()
    for ours in ("user", "item", "title", "genres"):
        if ours in done:
            continue
        likely = sorted((name for name in keys if keys[name] in USUAL[ours]), key=lambda name: USUAL[ours].index(keys[name]))
        full = [name for name in likely if _filled(sample[name]) > 0.5] or likely
        full = [name for name in full if name not in roles.values()]
        if full:
            roles[ours], why[ours] = full[0], "by its name"
            if len(full) > 1 and ours in ("user", "item"):
                why[ours] += f", before {full[1]!r}"
    if "time" not in done:
        free = [name for name in keys if name not in roles.values()]
        timely = [name for name in free if keys[name] in USUAL["time"] or TIMELY.search(name)]
        if not timely and len(told := [name for name in free if _is_date_and_clock(sample[name])]) == 1:
            timely = told
        weighed = [(kind_of(sample[name]), -_rank(keys[name]), -at, name) for at, name in enumerate(timely)]
        weighed = [one for one in weighed if one[0] and (one[0] != CLOCK or len(timely) == 1)]
        if weighed:
            kind, _, _, name = max(weighed)
            others = [one[3] for one in weighed if one[3] != name]
            roles["time"] = name
            why["time"] = f"its values tell a {KINDS[kind]}" + (f", more than {others[0]!r}" if others else "")
        elif timely:
            roles["time"], why["time"] = min(timely, key=lambda name: _rank(keys[name])), "by its name"
    return roles, why


def _by_place(sample: Any, done: set[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Columns without names: user and item; user, item, time; and these with ratings and the like between them."""
    names = list(sample.column_names)
    if done - {"time"} or len(names) < 2:
        return {}, {}
    kinds = [kind_of(sample[name]) for name in names]
    different = [pc.unique(sample[name]).to_pylist() for name in names]
    few = [len(cells) <= max(2, min(20, len(sample) // 20)) for cells in different]
    times = [at for at, kind in enumerate(kinds) if kind >= DAY and at > 1]
    behaves = any({"pv", "fav", "cart", "buy"}.intersection(cells) for cells in different)
    between = [at for at in range(2, len(names)) if at not in times]
    if len(names) > 2 and (len(times) != 1 or times[0] < len(names) - 1 or not (behaves or all(few[at] for at in between))):
        return {}, {}
    if kinds[0] >= DAY or kinds[1] >= DAY or ((few[0] or few[1]) and len(names) > 2 and len(sample) > 40):
        return {}, {}
    user, item = names[:2]
    if share(sample[user], r"^(B[0-9A-Z]{9}|[0-9]{9}[0-9X])$") > 0.9 and share(sample[item], r"^A[0-9A-Z]{9,20}$") > 0.9:
        user, item = item, user
    roles = {"user": user, "item": item, **({"time": names[times[0]]} if times else {})}
    return roles, dict.fromkeys(roles, "by its place: the file names no columns")


def _add_clock(sample: Any, roles: dict[str, str], why: dict[str, str]) -> None:
    """A date and a clock in two columns are one time."""
    if "time" not in roles:
        return
    when, kind = roles["time"], kind_of(sample[roles["time"]])
    free = [name for name in sample.column_names if name not in roles.values()]
    if kind == CLOCK:
        days = [name for name in free if TIMELY.search(name) and kind_of(sample[name]) == DAY]
        if len(days) == 1:
            roles["time"], roles["clock"] = days[0], when
    elif kind == DAY:
        clocks = [name for name in free if CLOCKLIKE.search(name) and _is_clock(sample[name], bool(HOURLY.search(name)))]
        if len(clocks) == 1 and not (HOURLY.search(clocks[0]) and any(re.search("(?i)^min", name) for name in free)):
            roles["clock"] = clocks[0]
    if "clock" in roles:
        why["time"] = f"the day, with the clock of {roles['clock']!r}"


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
        seconds, wrong = times.done()
    except Undecided:
        return DAY if not any(":" in str(text) for text in some.slice(0, 50).to_pylist()) else MOMENT
    except InputError:
        return YEAR
    said = len(some) - list(wrong.values()).count(NONE)
    values = np.delete(seconds.astype(np.float64), list(wrong))
    if len(values) < 0.5 * max(1, said) or not len(values):
        return CLOCK if _is_clock(some) else NOTHING
    if not EARLY <= np.median(values) <= LATE:
        return CLOCK if len(values) > 20 and values.max() < 240_000 and _is_clock(some) else ORDER
    return DAY if (values % 86_400 == values[0] % 86_400).all() else MOMENT


def _is_date_and_clock(column: Any) -> bool:
    """Whether its cells are a day and a clock in words, which nothing but a time is written like, whatever it is called."""
    texts = _said_cells(column)
    return bool(texts) and all(re.search(r"(?s)(?=.*:).*[-/. ]", text) for text in texts) and kind_of(column) == MOMENT


def _said_cells(column: Any) -> list[str]:
    """Return the first cells that say something, as they are spelt."""
    return [text for text in spelt(column.slice(0, 1_000)).to_pylist() if clean_cell(text)]


def _is_clock(column: Any, hours: bool = False) -> bool:
    texts = _said_cells(column)
    told = hours or all(":" in text for text in texts) or max(map(len, texts)) > 2
    return bool(texts) and told and bool(np.isfinite(clock(texts)).mean() > 0.95)


def usual_key(name: str) -> str:
    """Return the usual name that a column's name is a spelling of, or its letters and digits."""
    whole, tail = (re.sub(r"[^0-9a-z]", "", part.lower()) for part in (name, name.rsplit(".", 1)[-1]))
    forms = (whole, tail, whole.removesuffix("s"), whole.removeprefix("id") + "id")
    return next((form for form in forms if form in KNOWN), whole)


def _rank(key: str) -> int:
    return USUAL["time"].index(key) if key in USUAL["time"] else len(USUAL["time"])


def _filled(column: Any) -> float:
    some = column.slice(0, 1_000)
    return len(_said_cells(some)) / max(1, len(some))
