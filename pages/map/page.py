"""Memory map: do experts form regions, and can this picture be trusted?"""

import numpy as np
import pandas as pd
import streamlit as st

from elastic_core.services.map import layouts as projection
from elastic_core.services.map import picture as projection_map
from elastic_core.services.map import trust as projection_trust
from elastic_core.services.map.jobs import Maps
from elastic_core.services.map.layouts import DISTANCES, LAID_OUT, NEIGHBOURS, SEEDS, Settings
from elastic_core.services.map.picture import COLOURS, Map
from elastic_core.services.traffic import over_time
from pages.frame import shell
from pages.kit import cache, plot, view, waiting
from pages.kit.control import bound, one_of, one_of_list
from pages.map import answers, charts, instead, sets, words

LAYOUTS = {"pca": "PCA", "umap": "UMAP", "epochs": "Over the epochs"}
TOOLS = {"click": "Click", "lasso": "Lasso", "select": "Box", "pan": "Move"}  # under a lasso plotly reports no clicks
KEY, TITLE = "map_chart", "Do experts form regions, and can this picture be trusted?"
SHOWN = 8  # rows of the nearest, few enough that the table does not scroll under the mouse


def drawn_map() -> tuple[Map, str, float | None]:
    """The map that is asked for, what it is, and how far its axes reach (for maps that must keep them)."""
    always = [*retrieved, focus, *chosen]
    if layout == "umap":
        found = projection_map.by_umap(values, store, settings, start, always) if store else None
        if found is not None:
            return found, "UMAP", None
        offer_map(projection.sample(load, LAID_OUT, tuple(always)))
    elif layout == "epochs":
        over = over_epochs()
        if over is not None:
            return over
    return projection_map.by_pca(values, load, always, answers.pca), "PCA", None


def over_epochs() -> tuple[Map, str, float] | None:
    files = len(now.run.snapshots()) if len(values) <= LAID_OUT else 0
    numbers, layouts = answers.epochs(now.run, files) if files else ([], np.zeros((0, 0, 2)))
    if len(numbers) < 2 or layouts.shape[1] != len(values):
        st.info(words.SAYS("NO_COPIES"))
        return None
    kind = "PCA"
    if one_of("Aligned by", {"pca": "Aligned PCA", "umap": "Aligned UMAP"}, key="map_aligned", width="content") == "umap":
        if store is not None and len(store.epochs):
            numbers, layouts, kind = store.epochs.tolist(), store.aligned.astype(np.float32), "UMAP"
        else:
            offer_map(np.arange(len(values)), aligned=True)
    xy = layouts[numbers.index(bound(st.select_slider, "After epoch", numbers, numbers[-1], key="map_epoch"))]
    return Map(np.arange(len(xy)), xy, np.zeros(len(xy), dtype=bool)), f"Aligned {kind}", projection.reach(layouts)


def watch_maps() -> None:
    """The maps that are being computed, if any are; the page is drawn anew once when one ends."""
    maps = Maps(shell.RUNS)
    active = [job for job in maps.all() if job.active]
    waiting.watch(maps, active, "map_watch", lambda job: f"Map of {shell.plain(job.title)}")
    if any(not job.share for job in active):
        st.caption(words.SAYS("FIRST_TIME"))


def offer_map(experts: np.ndarray, aligned: bool = False) -> None:
    """Says that a layout is missing, and how to get it."""
    maps = Maps(shell.RUNS)
    last = maps.latest(run=now.run.name, neighbours=settings.neighbours, distance=settings.distance, aligned=aligned)
    if last is not None and last.active:
        st.info(words.SAYS("UNTIL"))
        return
    what = f"UMAP with {settings.neighbours} neighbours and distance {settings.distance:g}"
    st.info(words.SAYS("MISSING", what="This map" if aligned else what))
    waiting.offer(
        maps, last, (now.run, settings, experts, aligned), "map_compute",
        words.SAYS("COMPUTE"), "Compute it", "From three random starts, and for random numbers, too.",
    )  # fmt: skip


def labelled() -> np.ndarray:
    """What colours every expert; over the epochs the load is that epoch's."""
    if colour == "load" and kind.startswith("Aligned"):
        numbers, loads = over_time.load_by_epoch(now.run)
        if st.session_state["map_epoch"] in numbers:
            return loads[numbers.index(st.session_state["map_epoch"])].astype(float)
    return projection_map.labels(table, colour)


def picked() -> None:
    """A drawn region becomes the chosen set; a click chooses an expert. Ids are kept here, for the event is soon forgotten."""
    selection = st.session_state[KEY]["selection"]
    experts = [int(point["customdata"][0]) for point in selection["points"] if point.get("customdata")]
    if selection.get("lasso") or selection.get("box"):
        sets.choose(experts)
    elif experts:
        shell.look_at(experts[0])


def picture() -> None:
    figure = cache.drawn(
        charts.memory, drawn, table[["row", "column", "load"]], labels[drawn.experts], colour, palette,
        retrieved=retrieved, selected=focus, chosen=chosen, tool=tool, span=span,
    )  # fmt: skip
    frame = table.iloc[drawn.experts][["expert", "row", "column", "load"]].assign(
        x=drawn.xy[:, 0], y=drawn.xy[:, 1], colour=labels[drawn.experts],
        retrieved=[retrieved.get(int(e), 0) for e in drawn.experts],
    )  # fmt: skip
    alt = (
        f"{kind} map of {len(drawn.experts):,} of {len(values):,} experts, coloured by {COLOURS[colour].lower()}. "
        f"Experts of person {now.user + 1}, the best first: {', '.join(map(str, retrieved))}."
    )
    about = words.EPOCHS if kind.startswith("Aligned") else words.MAP
    view.chart(KEY, figure, frame, about, alt, on_select=picked, selection_mode=("points", "lasso", "box"))
    said = [words.SAYS("NUMBERED", person=now.user + 1)]
    if len(drawn.laid) < len(values):
        said.append(words.SAYS("SAMPLE", shown=len(drawn.laid), placed=int(drawn.placed.sum())))
    st.caption(" ".join(said))


def neighbours() -> None:
    row = table.iloc[focus]
    genre = f"{shell.plain(label)}, " if (label := _genre()) else ""
    view.expert_card(f"**Expert {focus}**: {genre}{row['load']:,} people, row {row['row']}, column {row['column']}.")
    near = projection_trust.neighbour_table(
        values, drawn.experts, drawn.xy, focus, projection_trust.neighbours(len(drawn.experts))
    )
    st.markdown(f"**{int(near['in both'].sum())} of its {len(near)} nearest** on the map are its nearest in truth, too.")
    shown = (
        near.head(SHOWN)
        .drop(columns="rank")
        .rename(columns={"original": "in truth", "rank on map": "map place", "in both": "true?"})
    )
    view.table(
        "map_near_table", shown.round(2), words.NEAR, f"The {len(shown)} nearest of expert {focus} in truth and on the map",
        column_config=words.NEAR_COLUMNS,
    )  # fmt: skip


def _genre() -> str:
    label = str(projection_map.labels(table, "genre")[focus]) if "people_genre" in table else ""
    return "" if label == projection_map.NO_GENRE else label


def trust() -> None:
    method = "UMAP" if kind == "UMAP" else "PCA"
    laid = store.experts if kind == "UMAP" and store is not None else projection.sample(load, LAID_OUT)
    panel = answers.trust(now, settings, laid)
    count = int(panel["neighbours"].iloc[0])
    agreement = projection_trust.map_agreement(store, settings, count) if store is not None and method == "UMAP" else None
    said, doubts = words.trusted(panel, method, agreement)
    st.markdown(f"{said}\n\n{alike}")
    with st.expander("How sure?", icon=":material/balance:"):
        st.markdown("\n\n".join([*doubts, colours]))
        _trusted(panel, method, laid)


def _trusted(panel: pd.DataFrame, method: str, laid: np.ndarray) -> None:
    """Every map of the panel as a table, and one of random numbers to look at."""
    left, right = st.columns([3, 2], gap="medium")
    with left:
        shown = panel.assign(seed=panel["seed"].astype("string").fillna("")).rename(columns={"trust": "trustworthiness"}).round(3)
        if panel["seed"].isna().all():  # PCA needs none
            shown = shown.drop(columns="seed")
        view.table("map_trust", shown, words.TRUST, f"How far {len(panel)} maps keep neighbours")
    with right:
        noise = store.get(settings, 0, "null") if method == "UMAP" and store is not None else None
        if noise is None:
            noise = answers.pca(projection.random_like(values[laid]))
        st.markdown(f"**The same {method} of random numbers**")
        st.plotly_chart(
            cache.drawn(charts.plain, noise, palette),
            key="map_null",
            config=plot.CONFIG,
            alt=f"{method} map of {len(noise):,} lists of random numbers",
        )


now = shell.context()
view.needs_experts(now, TITLE, instead.show)
view.title(TITLE)
st.write(words.SAYS("IDEA", width=now.model.config.width))
values, store, table = answers.values(now), answers.store(now), answers.table(now, len(now.run.snapshots()))
load, palette = table["load"].to_numpy(), shell.palette()
retrieved = {int(e): rank for rank, e in enumerate(cache.traffic(now).experts[now.user], 1)}
strongest = cache.strongest(now, now.user)
focus = now.expert if now.expert is not None else strongest if strongest is not None else next(iter(retrieved))
chosen, unknown = sets.chosen(table)
near, distance, start = 15, 0.1, 0
with view.row("top"):
    layout = one_of("Map", LAYOUTS, key="map_layout", width="content")
    offered = {name: COLOURS[name] for name in projection_map.offered(table)}
    first = next(name for name in ("interest", "genre", "load") if name in offered)
    colour = one_of_list("Colour", offered, key="map_colour", first=first, width=260)
    tool = one_of("Mouse", TOOLS, key="map_tool", width="content")
if layout == "umap":
    with view.row("top"):
        near = one_of("Neighbours", NEIGHBOURS, key="map_near", default=near, width="content")
        distance = one_of("Distance", DISTANCES, key="map_dist", default=distance, named="{:g}".format, width="content")
        start = one_of("Random start", SEEDS, key="map_seed", default=start, width="content")
settings = Settings(near, distance)
watch_maps()
drawn, kind, span = drawn_map()
labels = labelled()
left, right = st.columns([3, 2], gap="medium")
with left:
    picture()
with right:
    neighbours()
sets.bar(now, chosen, unknown, values)
if chosen:
    sets.summary(chosen, table, values)
whole = labels.dtype.kind in "OUS"
found = answers.region(now, drawn.laid, colour, labels[drawn.laid])
alike, colours = words.regions(whole, found, projection_trust.neighbours(min(len(drawn.laid), 1_500)))
trust()
view.foot(
    "python -m elastic_core.services.map.compute checkpoints",
    *("--run", now.run.name, "--neighbours", settings.neighbours, "--distance", f"{settings.distance:g}"),
    map_layout=layout,
    map_colour=colour,
    map_set=st.session_state["map_set"],
    expert=focus,
    chosen=chosen,
)
