"""Memory map: do experts form regions, and can this picture be trusted?"""

import numpy as np
import streamlit as st

from elastic_core.services.map import layouts
from elastic_core.services.map import picture as pictures
from elastic_core.services.map import trust as trusting
from elastic_core.services.map.jobs import Maps
from elastic_core.services.map.layouts import DISTANCES, LAID_OUT, NEIGHBOURS, SEEDS, Settings
from elastic_core.services.map.picture import Map
from elastic_core.services.traffic import over_time
from pages.frame import shell
from pages.kit import cache, plot, view, waiting
from pages.kit.control import bound, one_of, one_of_list
from pages.map import answers, charts, instead, sets, words

LAYOUTS = {"pca": "PCA", "umap": "UMAP", "epochs": "Over the epochs"}
TOOLS = {"click": "Click", "lasso": "Lasso", "select": "Box", "pan": "Move"}  # under a lasso plotly reports no clicks
KEY, TITLE = "map_chart", "Do experts form regions, and can this picture be trusted?"
SHOWN = 8  # rows of the nearest, few enough that the table does not scroll under the mouse


def drawn_map() -> Map:
    """Return the map that is asked for; PCA where there is none yet."""
    always = [*retrieved, focus, *chosen]
    found = None
    if layout == "umap":
        found = pictures.by_umap(values, store, settings, start, always) if store else None
        if found is None:
            offer_map(layouts.sample(load, LAID_OUT, tuple(always)))
    elif layout == "epochs":
        found = over_epochs()
    return found or pictures.by_pca(values, load, always)


def over_epochs() -> Map | None:
    files = len(now.run.snapshots()) if len(values) <= LAID_OUT else 0
    numbers, aligned = answers.epochs(now.run, files) if files else ([], np.zeros((0, 0, 2)))
    if len(numbers) < 2 or aligned.shape[1] != len(values):
        st.info(words.SAYS("NO_COPIES"))
        return None
    kind = "PCA"
    if one_of("Aligned by", {"pca": "Aligned PCA", "umap": "Aligned UMAP"}, key="map_aligned", width="content") == "umap":
        if store is not None and len(store.epochs):
            numbers, aligned, kind = store.epochs.tolist(), store.aligned.astype(np.float32), "UMAP"
        else:
            offer_map(np.arange(len(values)), aligned=True)
    epoch = bound(st.select_slider, "After epoch", numbers, numbers[-1], key="map_epoch")
    return pictures.at_epoch(kind, aligned, numbers.index(epoch))


def watch_maps() -> None:
    """The maps that are being computed, if any are; the page is drawn anew once when one ends."""
    maps = Maps(shell.RUNS)
    active = [job for job in maps.all() if job.active]
    waiting.watch(maps, active, "map_watch", lambda job: f"Map of {shell.plain(job.asked.title)}")
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
    if colour == "load" and drawn.span:
        loads = over_time.load_by_epoch(now.run)
        if (epoch := st.session_state["map_epoch"]) in loads.index:
            return loads.loc[epoch].to_numpy(dtype=float)
    return pictures.labels(table, colour)


def picked() -> None:
    """A drawn region becomes the chosen set; a click chooses an expert. Ids are kept here, for the event is soon forgotten."""
    selection = st.session_state[KEY]["selection"]
    experts = [int(point["customdata"][0]) for point in selection["points"] if point.get("customdata")]
    if selection.get("lasso") or selection.get("box"):
        sets.choose(experts)
    elif experts:
        shell.look_at(experts[0])


def picture() -> None:
    frame = pictures.marks(drawn, table, labels, retrieved)
    figure = cache.drawn(
        charts.memory, frame, drawn.placed, colour, palette, selected=focus, chosen=chosen, tool=tool, span=drawn.span
    )
    alt = (
        f"{drawn.kind} map of {len(drawn.experts):,} of {len(values):,} experts, coloured by {offered[colour].lower()}. "
        f"Experts of person {now.user + 1}, the best first: {', '.join(map(str, retrieved))}."
    )
    about = words.EPOCHS if drawn.span else words.MAP
    view.chart(KEY, figure, frame, about, alt, on_select=picked, selection_mode=("points", "lasso", "box"))
    said = words.SAYS("NUMBERED", person=now.user + 1)
    if len(drawn.laid) < len(values):
        said += " " + words.SAYS("SAMPLE", shown=len(drawn.laid), placed=int(drawn.placed.sum()))
    st.caption(said)


def neighbours() -> None:
    row = table.iloc[focus]
    label = str(pictures.labels(table, "genre")[focus]) if "genre" in offered else pictures.NO_GENRE
    genre = "" if label == pictures.NO_GENRE else f"{shell.plain(label)}, "
    view.expert_card(f"**Expert {focus}**: {genre}{row['load']:,} people, row {row['row']}, column {row['column']}.")
    near = trusting.neighbour_table(values, drawn.experts, drawn.xy, focus)
    st.markdown(f"**{near['true?'].sum()} of its {len(near)} nearest** on the map are its nearest in truth, too.")
    shown = near.head(SHOWN).round(2)
    alt = f"The {len(shown)} nearest of expert {focus} in truth and on the map"
    view.table("map_near_table", shown, words.NEAR, alt, column_config=words.NEAR_COLUMNS)


def trust() -> None:
    """Show every map of the panel as a table, and one of random numbers."""
    umap = store if drawn.kind == "UMAP" else None
    method, laid = ("PCA", layouts.sample(load, LAID_OUT)) if umap is None else ("UMAP", umap.experts)
    panel = answers.trust(now, file, settings, laid)
    agreement = None if umap is None else trusting.map_agreement(umap, settings, int(panel["neighbours"].iloc[0]))
    said, doubts = words.trusted(panel, method, agreement)
    st.markdown(f"{said}\n\n{alike}")
    with st.expander("How sure?", icon=":material/balance:"):
        st.markdown("\n\n".join([*doubts, colours]))
        left, right = st.columns([3, 2], gap="medium")
        with left:
            shown = panel.assign(seed=panel["seed"].astype("string").fillna("")).rename(columns={"trust": "trustworthiness"})
            if panel["seed"].isna().all():  # PCA needs none
                shown = shown.drop(columns="seed")
            view.table("map_trust", shown.round(3), words.TRUST, f"How far {len(panel)} maps keep neighbours")
        with right:
            noise = None if umap is None else umap.get(settings, 0, "null")
            if noise is None:
                noise = layouts.pca(layouts.random_like(values[laid]))
            st.markdown(f"**The same {method} of random numbers**")
            alt = f"{method} map of {len(noise):,} lists of random numbers"
            st.plotly_chart(cache.drawn(charts.plain, noise, palette), key="map_null", config=plot.CONFIG, alt=alt)


now = shell.context()
view.needs_experts(now, TITLE, instead.show)
view.title(TITLE)
st.write(words.SAYS("IDEA", width=now.model.config.width))
file = now.run.path / layouts.FOLDER / layouts.STORE
values, store, table = answers.values(now), answers.store(now, file), answers.table(now, len(now.run.snapshots()))
load, palette = table["load"].to_numpy(), shell.palette()
retrieved = {int(e): rank for rank, e in enumerate(cache.traffic(now).experts[now.user], 1)}
strongest = cache.strongest(now, now.user)
focus = now.expert if now.expert is not None else strongest if strongest is not None else next(iter(retrieved))
chosen, unknown = sets.chosen(table)
settings, start = Settings(), 0
with view.row("top"):
    layout = one_of("Map", LAYOUTS, key="map_layout", width="content")
    offered = pictures.offered(table)
    first = next(name for name in ("interest", "genre", "load") if name in offered)
    colour = one_of_list("Colour", offered, key="map_colour", first=first, width=260)
    tool = one_of("Mouse", TOOLS, key="map_tool", width="content")
if layout == "umap":
    with view.row("top"):
        settings = Settings(
            one_of("Neighbours", NEIGHBOURS, key="map_near", default=settings.neighbours, width="content"),
            one_of("Distance", DISTANCES, key="map_dist", default=settings.distance, named="{:g}".format, width="content"),
        )
        start = one_of("Random start", SEEDS, key="map_seed", width="content")
watch_maps()
drawn = drawn_map()
labels = labelled()
left, right = st.columns([3, 2], gap="medium")
with left:
    picture()
with right:
    neighbours()
sets.bar(now, chosen, unknown, values)
if chosen:
    sets.summary(chosen, table, values)
found = answers.region(now, drawn.laid, labels[drawn.laid])
alike, colours = words.regions(labels.dtype.kind in "OUS", found)
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
