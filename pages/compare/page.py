"""Compare: is A better than B, for whom, and at what cost? From the ranks that runs keep; only lists open a model."""

import streamlit as st

from elastic_core import comparisons
from elastic_core.core.candidates import PROTOCOLS
from elastic_core.core.evaluate import NAMES
from elastic_core.errors import InputError
from elastic_core.evaluation import verdict as said
from elastic_core.runs import Run
from elastic_core.services.compare import slices, standings, versus
from elastic_core.services.method import notes
from elastic_core.services.person import inspect
from elastic_core.services.train.run_table import system
from pages.compare import answers, charts
from pages.compare import words as about
from pages.frame import shell
from pages.kit import cache, forest, judged, plot, view
from pages.kit.control import bound, one_of, one_of_list

WITH, PROTOCOL, METRIC, PERSON, ACROSS, UP = "cmp_with", "cmp_protocol", "cmp_metric", "cmp_person", "cmp_x", "cmp_y"
JOURNEY, TRAIN, RESULTS = "journey/page.py", "train/page.py", "results/page.py"
SEEN = {
    "full": "all unmet items",
    "full-seen": "all items",
    "pop100": "about 100 drawn by popularity",
    "uniform100": "100 drawn evenly",
}


def nobody() -> None:
    """Where two cannot be compared: where one gets another."""
    with st.container(horizontal=True):
        if st.button("Train another model", icon=":material/model_training:", type="primary", key="cmp_train"):
            shell.go(TRAIN)
        if st.button("All that was tested", icon=":material/leaderboard:", key="cmp_results"):
            shell.go(RESULTS)
    view.foot("python -m elastic_core train --help")
    st.stop()


def controls() -> Run:
    """B, protocol and metric. B is the sidebar's second run, or chosen here."""
    names = [run.name for run in runs if run.name != now.run.name]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        other = now.other.name if now.other else _box(names)
        bound(st.selectbox, "Protocol", PROTOCOLS, key=PROTOCOL, width=160, help=notes.AGAINST)
        at = NAMES.index("NDCG@10")
        bound(st.selectbox, "Metric", NAMES, index=at, key=METRIC, width=140, help=notes.WORDS["NDCG@10"])
    return now.other or next(run for run in runs if run.name == other)


def _box(names: list[str]) -> str:
    gone = st.session_state.get(WITH)
    if gone and gone not in names:
        st.caption(f"There is no tested run {shell.quoted(str(gone))} on this data to compare with any more.")
    best = standings.partner(runs, now.run)
    first = names.index(best.name) if best else 0
    st.session_state["cmp_first"] = names[first]  # the tour asks whether another one was chosen
    help_ = "“Compare with” in the sidebar goes before this box."
    return one_of_list("B: compare with", names, key=WITH, first=names[first], width=260, help=help_)


def listed(run: Run) -> versus.Lists:
    """Everybody's ten with a run, with a bar while they are made."""
    place = st.empty()
    bar = lambda name, share: place.progress(share, text=f"Ranking for everybody with {shell.plain(name)}")  # noqa: E731
    found = answers.listed(run, now.dataset, bar)
    place.empty()
    return found


def verdict() -> None:
    names = [f"{side}, {shell.plain(system(run.config))}," for side, run in (("A", now.run), ("B", other))]
    st.markdown(f"### {said.sentence(main, *names)}")
    over = "people" if not main.seeds_counted else "people and training seeds"
    with st.container(horizontal=True):
        for side, run, runs_of, mean in (("A", now.run, ours, main.mean_a), ("B", other, theirs, main.mean_b)):
            seeds = f" and {len(runs_of)} training seeds" if len(runs_of) > 1 else ""
            st.metric(f"{side}: {shell.plain(run.name)}", f"{mean:.4f}", help=f"Mean over {main.users:,} people{seeds}")
        st.metric(
            "A − B", f"{main.difference:+.4f}", f"95% {main.low:+.4f} to {main.high:+.4f}", delta_color="off", delta_arrow="off",
            help=f"Paired; what other {over} would give (Student’s t)",
        )  # fmt: skip
        st.metric("p", said.chance(main.p), help="Two-sided")
    against = SEEN[protocol].replace("items", words.many)
    note = "" if main.seeds_counted else f"**{said.ONE_RUN.capitalize()}**. "
    st.caption(
        f"{metric} of the {words.one} kept back, ranked against {against}. {note}"
        + shell.plain(" ".join(standings.seeds(scored, run, protocol, metric) for run in (now.run, other)))
        + " p is of this pair alone; Results adjusts it for all others."
    )


def pair() -> None:
    left, right = st.columns(2, gap="medium")
    with left:
        st.subheader("Under each protocol", anchor=False)
        found = [judged.compared(ours, theirs, p, metric) for p in PROTOCOLS if p in a.ranks and p in b.ranks]
        table = standings.across(found)
        figure = cache.drawn(forest.forest, table, palette, metric, row="protocol")
        alt = "A minus B: " + "; ".join(f"{c.protocol} {said.numbers(c)}" for c in found)
        view.chart("cmp_across", figure, table, about.ACROSS, alt)
    with right:
        st.subheader(f"Who has the next {words.one} higher up?", anchor=False)
        counts = versus.duel(a, b)
        figure = cache.drawn(charts.duel, counts, palette)
        alt = f"Higher with A for {counts['a']} people, with B for {counts['b']}, the same place for {counts['same']}."
        view.chart("cmp_duel", figure, standings.counted(counts), about.DUEL, alt)


def people() -> None:
    st.subheader("For whom?", anchor=False)
    table = answers.forest(ours, theirs, now.dataset, protocol, metric)
    st.markdown(shell.plain(slices.remaining(table)))
    figure = cache.drawn(forest.forest, table, palette, metric, family="family")
    alt = f"{metric} of A minus B in {len(table)} groups of people, with intervals. {slices.remaining(table)}"
    view.chart("cmp_forest", figure, table, about.FOREST, alt)


def clicked() -> None:
    """A mark of the scatter is a person."""
    points = st.session_state["cmp_places"]["selection"]["points"]
    person = next((point["customdata"] for point in points if point.get("customdata")), None)
    if person is not None:
        shell.meet(int(person[0]), keep_expert=False)


def extremes() -> None:
    st.subheader("Biggest wins and losses", anchor=False)
    left, right = st.columns([5, 6], gap="medium")
    with left:
        everyone = versus.everyone(a, b, now.dataset)
        figure = cache.drawn(charts.places, everyone, palette, now.run.name, other.name, now.user)
        alt = f"Place of the true next {words.one} with A against B for {len(everyone):,} people; a click chooses the person."
        view.chart("cmp_places", figure, standings.everyone(everyone), about.PLACES, alt, on_select=clicked)
    with right:
        table = versus.extremes(a, b, now.dataset, protocol, metric)
        shown = standings.people(table)
        alt = f"The {len(table)} people with the largest differences between A and B"
        widths = {"better": 55, "person": 60, "came next": 150, "place with A": 85, "place with B": 85}
        narrow = {name: st.column_config.Column(width=width) for name, width in widths.items()}
        view.table("cmp_extremes", shown, None, alt, height=330, column_config=narrow)
        _journey(table)


def _journey(table) -> None:  # type: ignore[no-untyped-def]
    """The keyboard's way: choose one of them, then look at the reason."""
    options = [int(user) for user in table["user"]]
    said = {
        int(row.user): f"Person {row.user + 1}: place {row.place_a:,.0f} with A, {row.place_b:,.0f} with B"
        for row in table.itertuples()
    }
    with st.container(horizontal=True, vertical_alignment="bottom"):
        person = st.selectbox("Look at one of them", options, format_func=said.__getitem__, key=PERSON)
        st.button(
            "Choose this person", on_click=shell.meet, args=(person, False), disabled=person is None or shell.locked("user")
        )
    if st.button(
        f"Why? Person {now.user + 1} on Journey", icon=":material/route:", type="tertiary", key="cmp_why",
        on_click=shell.beside, args=(other.name,),
    ):  # fmt: skip
        shell.go(JOURNEY)


def closer() -> None:
    parts = {"All runs": all_runs, "Trade-offs": tradeoffs, "The lists": lists}
    chosen = one_of("Closer look", list(parts), key="cmp_part", default="All runs")
    parts[chosen]()


def all_runs() -> None:
    table = standings.metrics(scored, metric)
    wide = standings.wide(table)
    order = ["run", *wide.columns.drop(["run", "system"]), "system"]  # a number beside its run, on a phone too
    alt = f"{metric} of {len(scored)} runs under four protocols"
    view.table("cmp_runs", wide, about.RUNS, alt, column_order=order)


def tradeoffs() -> None:
    names = standings.QUANTITIES
    with st.container(horizontal=True, vertical_alignment="bottom"):
        x = bound(st.selectbox, "Across", list(names), index=list(names).index("parameters"), key=ACROSS, width=200)
        y = bound(st.selectbox, "Up", list(names), key=UP, width=200)
        missing = [run for run in runs if answers.known(run, now.dataset) is None]
        more = (
            st.button(f"List everybody’s ten with {len(missing)} runs", help="For coverage, popularity and scoring time")
            if missing
            else False
        )
    if more:
        for run in missing:
            try:
                listed(run)
            except InputError as error:
                st.caption(f"{shell.plain(run.name)} cannot be opened: {shell.plain(str(error))}.")
    known = {run.name: found for run in runs if (found := answers.known(run, now.dataset)) is not None}
    table = standings.quantities(runs, protocol, known, now.dataset, standings.shipped_latencies(shell.RUNS))
    shown = table[table[x].notna() & table[y].notna()]
    if len(shown) < len(table):
        st.caption(f"{len(table) - len(shown)} of {len(table)} runs lack one of the two.")
    figure = cache.drawn(charts.tradeoff, table, palette, x, y, names, {now.run.name: "A", other.name: "B"})
    alt = f"{names[y]} against {names[x]} of {len(shown)} runs, bubbles by parameters."
    view.chart("cmp_trade", figure, table, about.TRADE, alt)


def lists() -> None:
    mine, other_lists = listed(now.run), listed(other)
    table = standings.list_properties(mine, other_lists, now.dataset)
    view.table("cmp_lists", table, about.LISTS, "Coverage and popularity of the lists of A and B, and of what people chose")
    same = versus.overlap(mine, other_lists)
    st.caption(f"A’s and B’s tens share {same.mean():.2f} {words.many} on average ({len(same):,} people).")


now = shell.context()
words = inspect.words(now.dataset)
st.title("Is A better than B, for whom?", anchor=False)
scored = answers.comparable(cache.scored(shell.RUNS), now.dataset)
runs = [run for run in scored if run.has_weights]
if now.other is None and not [run for run in runs if run.name != now.run.name]:
    st.info("There is no second tested run on this data to compare with.")
    nobody()
other = controls()
protocol, metric, palette = st.session_state[PROTOCOL], st.session_state[METRIC], plot.palette(shell.is_dark())
try:
    a, b = now.run.report(), other.report()
    ours, theirs = comparisons.systems(now.run, other, scored)  # all training seeds of each
    main = judged.compared(ours, theirs, protocol, metric)
except InputError as problem:
    st.error(f"{shell.plain(str(problem))}.")
    nobody()
verdict()
pair()
people()
extremes()
closer()
view.foot(
    "python -m elastic_core compare", ",".join(run.name for run in ours), ",".join(run.name for run in theirs),
    "--protocol", protocol, "--metric", metric,
    other=other.name, protocol=protocol, metric=metric,
)  # fmt: skip
