"""The third depth: is A better than B, for whom, and at what cost? From the ranks that runs keep; only lists open a model."""

from collections.abc import Callable
from typing import NamedTuple

import pandas as pd
import streamlit as st

from elastic_core import comparisons
from elastic_core.core.evaluate import NAMES, PROTOCOLS
from elastic_core.errors import InputError
from elastic_core.evaluation import verdict as said
from elastic_core.evaluation.compare import Comparison
from elastic_core.labels import apart, data_called
from elastic_core.runs import Run
from elastic_core.runs.ranks import Report
from elastic_core.services.evidence import slices, standings, versus
from elastic_core.services.person import inspect
from elastic_core.text import minus
from pages.evidence import answers, charts
from pages.frame import shell
from pages.kit import cache, forest, glossary, judged, plot, prose, view
from pages.kit.control import bound, button, one_of, one_of_list, write_in_address

WORDS = prose.of(__file__)
WITH, PROTOCOL, METRIC, PERSON, ACROSS, UP = "cmp_with", "cmp_protocol", "cmp_metric", "cmp_person", "cmp_x", "cmp_y"
JOURNEY, TRAIN = "journey/page.py", "train/page.py"


class Two(NamedTuple):
    """What is compared: a run each, all training seeds of each, and under what."""

    a: Run
    b: Run
    ours: list[Run]
    theirs: list[Run]
    scored: list[Run]  # all that were tested on these data
    now: shell.Context
    protocol: str
    metric: str
    main: Comparison
    reports: tuple[Report, Report]
    palette: plot.Palette
    noun: inspect.Words
    names: tuple[str, str]  # of both, beside each other

    @property
    def runs(self) -> list[Run]:
        return [run for run in self.scored if run.has_weights]


def show() -> None:
    now = shell.context()
    scored = answers.comparable(cache.scored(shell.RUNS), now.dataset)
    runs = [run for run in scored if run.has_weights]
    if now.other is None and not [run for run in runs if run.name != now.run.name]:
        st.info("There is no second tested model on this data to compare with.")
        nobody()
        return
    other = controls(now, runs)
    protocol, metric = st.session_state[PROTOCOL], st.session_state[METRIC]
    try:
        reports = now.run.report(), other.report()
        ours, theirs = comparisons.systems(now.run, other, scored)
        main = judged.compared(ours, theirs, protocol, metric)
    except InputError as problem:
        st.error(f"{shell.plain(problem)}.")
        nobody()
        return
    palette, noun = shell.palette(), now.words
    two = Two(now.run, other, ours, theirs, scored, now, protocol, metric, main, reports, palette, noun, apart(now.run, other))
    draw_verdict(two)
    draw_duel(two)
    PARTS[one_of("Look closer", list(PARTS), key="cmp_part")](two)
    view.foot(
        "python -m elastic_core compare", ",".join(run.name for run in ours), ",".join(run.name for run in theirs),
        "--protocol", protocol, "--metric", metric,
        other=other.name, protocol=protocol, metric=metric,
    )  # fmt: skip


def nobody() -> None:
    """Where two cannot be compared: where one gets another."""
    with view.row("top"):
        if st.button("Train another model", icon=":material/model_training:", type="primary", key="cmp_train"):
            shell.go(TRAIN)
        button("All that was tested", "cmp_results", st.session_state.update, {"ev_depth": "Systems"}, icon="leaderboard")
    view.foot("python -m elastic_core train --help")


def controls(now: shell.Context, runs: list[Run]) -> Run:
    """B, protocol and metric. B is the sidebar's second run, or chosen here."""
    others = {run.name: run for run in runs if run.name != now.run.name}
    with view.row("bottom"):
        other = now.other.run if now.other else others[choose_b(now, runs, others)]
        bound(st.selectbox, "Protocol", PROTOCOLS, key=PROTOCOL, width=150, help=glossary.PROTOCOLS)
        at = NAMES.index("NDCG@10")
        bound(st.selectbox, "Metric", NAMES, index=at, key=METRIC, width=130, help=glossary.METRICS["NDCG@10"])
    return other


def choose_b(now: shell.Context, runs: list[Run], others: dict[str, Run]) -> str:
    gone = st.session_state.get(WITH)
    if gone and gone not in others:
        st.caption(f"{shell.quoted(gone)} is not among the tested models on this data any more.")
    best = standings.partner(runs, now.run)
    first = best.name if best else next(iter(others))
    st.session_state["cmp_first"] = first  # the tour asks whether another one was chosen
    named = lambda name: _short(others[name]) if name in others else str(name)  # noqa: E731
    help_ = "“Compare with” on the left, under “More”, goes before this box."
    chosen = one_of_list(
        "Compare with", list(others), key=WITH, first=first, format_func=named, width=560, help=help_, listen=False
    )
    write_in_address(WITH, chosen if chosen != first else None)  # by its folder’s name, which is shorter than what people read
    return chosen


def _short(run: Run) -> str:
    """All runs of this list are on the same data."""
    return cache.called(run).replace(f" · {data_called(run)}", "")


def draw_verdict(two: Two) -> None:
    main = two.main
    st.markdown(f"### {shell.plain(said.sentence(main, *two.names))}")
    with view.row():
        counts = " and ".join(str(len(runs)) for runs in (two.ours, two.theirs))
        what = f"{two.metric}: {glossary.METRICS[two.metric]}. " if two.metric in glossary.METRICS else ""
        st.caption(f"{what}Means of {counts} trainings, ranked {glossary.METRICS[two.protocol]}.", width="content")
        panel = st.popover("How sure?", key="cmp_sure", type="tertiary")
    with view.row("top"):
        for side, runs_of, mean in zip(two.names, (two.ours, two.theirs), (main.mean_a, main.mean_b), strict=True):
            seeds = f" and {len(runs_of)} trainings" if len(runs_of) > 1 else ""
            st.metric(shell.plain(side), f"{mean:.4f}", help=f"Mean over {main.users:,} people{seeds}", width="content")
        interval = f"95% {main.low:+.4f} to {main.high:+.4f}"
        st.metric("Difference", minus(f"{main.difference:+.4f}"), minus(interval), delta_color="off", delta_arrow="off")
        st.metric(
            "Chance of so much by luck", said.p_text(main.p), help="p, two-sided: how often luck alone gives such a difference"
        )
    with panel:
        over = "people" if not main.seeds_counted else "people and trainings"
        st.markdown(f"{two.metric} of the {two.noun.one} kept back.")
        st.markdown(f"The interval says what other {over} would give (Student’s t; the same people on both sides).")
        if not main.seeds_counted:
            st.markdown(f"**{said.ONE_RUN.capitalize()}**.")
        for run in (two.a, two.b):
            st.markdown(shell.plain(f"{cache.called(run)} {standings.seeds(two.scored, run, two.protocol, two.metric)}"))
        st.markdown("p is of this pair alone. *Systems* adjusts it for all the others.")


def draw_duel(two: Two) -> None:
    view.heading(f"Who has the next {two.noun.one} higher up?")
    counts = versus.duel(*two.reports)
    figure = cache.drawn(charts.duel, counts, two.palette, two.names)
    a, b = two.names
    alt = f"Higher with {a} for {counts['a']} people, with {b} for {counts['b']}, the same place for {counts['same']}."
    view.chart("cmp_duel", figure, standings.places_counted(counts, *two.names), WORDS.about("DUEL"), alt)


def for_whom(two: Two) -> None:
    table = answers.forest(two.ours, two.theirs, two.now.dataset, two.protocol, two.metric)
    st.markdown(shell.plain(slices.remaining(table)))
    figure = cache.drawn(forest.forest, table, two.palette, two.metric, two.names, family="family")
    what = f"{two.metric} of {' minus '.join(two.names)}"
    alt = f"{what} in {len(table)} groups of people, with intervals. {slices.remaining(table)}"
    view.chart("cmp_forest", figure, standings.named(table, *two.names), WORDS.about("GROUPS"), alt)


def other_protocols(two: Two) -> None:
    a, b = two.reports
    found = [judged.compared(two.ours, two.theirs, p, two.metric) for p in PROTOCOLS if p in a.ranks and p in b.ranks]
    table = standings.across(found)
    figure = cache.drawn(forest.forest, table, two.palette, two.metric, two.names, row="protocol")
    alt = " minus ".join(two.names) + ": " + "; ".join(f"{c.protocol} {said.numbers(c)}" for c in found)
    view.chart("cmp_across", figure, standings.named(table, *two.names), WORDS.about("ACROSS"), alt)


def wins_and_losses(two: Two) -> None:
    left, right = st.columns([5, 6], gap="medium")
    with left:
        everyone = versus.places_table(*two.reports, two.now.dataset)
        figure = cache.drawn(charts.places, everyone, two.palette, two.now.user, two.names)
        what = f"Place of the true next {two.noun.one} with {' against '.join(two.names)}"
        alt = f"{what} for {len(everyone):,} people; a click chooses the person."
        view.chart(
            "cmp_places", figure, standings.shown_places(everyone, *two.names), WORDS.about("PLACES"), alt, on_select=clicked
        )
    with right:
        table = versus.extremes(*two.reports, two.now.dataset, two.protocol, two.metric)
        alt = f"The {len(table)} people with the largest differences between the two"
        widths = {"better": 80, "person": 60, "came next": 120} | {f"{name}: place": 95 for name in two.names}
        view.table("cmp_extremes", standings.people(table, *two.names), None, alt, height=330, widths=widths)
        to_the_person(table, two)


def clicked() -> None:
    """A mark of the scatter is a person."""
    if person := view.clicked("cmp_places"):
        shell.meet(int(person[0]), keep_expert=False)


def to_the_person(table: pd.DataFrame, two: Two) -> None:
    """The keyboard's way: choose one of them, then look at the reason."""
    options = [int(user) for user in table["user"]]
    named = {
        int(row.user): f"Person {row.user + 1}: place {row.place_a:,.0f} and {row.place_b:,.0f}" for row in table.itertuples()
    }
    with view.row("bottom"):
        person = st.selectbox("Look at one of them", options, format_func=named.__getitem__, key=PERSON)
        held = person is None or shell.locked("user")
        button("Choose this person", "cmp_choose", shell.meet, person, False, disabled=held)
    if button(f"Why? Person {two.now.user + 1} on Journey", "cmp_why", shell.beside, two.b.name, icon="route", type="tertiary"):
        shell.go(JOURNEY)


def tradeoffs(two: Two) -> None:
    names, data = standings.QUANTITIES, two.now.dataset
    with view.row("bottom"):
        x = bound(st.selectbox, "Across", list(names), index=list(names).index("parameters"), key=ACROSS, width=200)
        y = bound(st.selectbox, "Up", list(names), key=UP, width=200)
        missing = [run for run in two.runs if answers.known(run, data) is None]
        help_ = "For coverage, popularity and scoring time"
        more = bool(missing) and st.button(f"List everybody’s ten with {len(missing)} models", help=help_)
    for run in missing if more else ():
        try:
            listed(run, two)
        except InputError as error:
            st.caption(f"{shell.plain(cache.called(run))} cannot be opened: {shell.plain(error)}.")
    known = {run.name: found for run in two.runs if (found := answers.known(run, data)) is not None}
    table = standings.quantities(two.runs, two.protocol, known, data)
    shown = table[table[x].notna() & table[y].notna()]
    if len(shown) < len(table):
        st.caption(f"{len(table) - len(shown)} of {len(table)} models lack one of the two.")
    figure = cache.drawn(charts.tradeoff, table, two.palette, x, y, names, {two.a.name: two.names[0], two.b.name: two.names[1]})
    alt = f"{names[y]} against {names[x]} of {len(shown)} models; the size of a mark is its parameters."
    view.chart("cmp_trade", figure, table, WORDS.about("TRADE"), alt)


def lists(two: Two) -> None:
    mine, theirs = listed(two.a, two), listed(two.b, two)
    table = standings.list_properties(mine, theirs, two.now.dataset, two.names)
    alt = "Coverage and popularity of the lists of both, and of what people chose"
    view.table("cmp_lists", table, WORDS.about("LISTS"), alt)
    same = versus.shared_items(mine, theirs)
    st.caption(f"Both lists of ten share {same.mean():.2f} {two.noun.many} on average ({len(same):,} people).")


def listed(run: Run, two: Two) -> versus.Lists:
    """Everybody's ten with a run, with a bar while they are made."""
    place = st.empty()
    bar = lambda name, share: place.progress(share, text=f"Ranking for everybody with {shell.plain(name)}")  # noqa: E731
    found = answers.listed(run, two.now.dataset, bar)
    place.empty()
    return found


PARTS: dict[str, Callable[[Two], None]] = {
    "For whom?": for_whom, "Other protocols": other_protocols, "Wins and losses": wins_and_losses, "Trade-offs": tradeoffs,
    "The lists": lists,
}  # fmt: skip
