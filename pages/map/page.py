"""Memory map: do experts form regions, and can this picture be trusted?"""

import numpy as np
import streamlit as st

from elastic_core.jobs.job_kinds import Maps
from elastic_core.services.map import layouts
from elastic_core.services.map import picture as pictures
from elastic_core.services.map import trust as trusting
from elastic_core.services.map.layouts import DISTANCES, LAID_OUT, NEIGHBOURS, SEEDS, Settings
from elastic_core.services.map.picture import Map
from pages.components import cache, job_bar, page_context, page_elements, plot
from pages.components.controls import choose_from_list, choose_one
from pages.map import cached, charts, sentences

LAYOUTS = {"pca": "PCA", "umap": "UMAP"}
KEY, TITLE = "map_chart", "Do experts form regions, and can this picture be trusted?"


def compute_map() -> Map:
    """Return the map that is asked for; PCA where there is none yet."""
    always = [*retrieved, focus]
    layout_found = None
    if layout == "umap":
        layout_found = pictures.by_umap(values, store, settings, start, always) if store else None
        if layout_found is None:
            offer_map(layouts.sample_experts(load, LAID_OUT, tuple(always)))
    return layout_found or pictures.by_pca(values, load, always)


def watch_maps() -> None:
    """The maps that are being computed, if any are; the page is drawn anew once when one ends."""
    maps = Maps(page_context.RUNS)
    active = [job for job in maps.list_jobs() if job.active]
    job_bar.show_bars(maps, active, "map_watch", lambda job: f"Map of {page_context.escape_markdown(job.request.title)}")
    if any(not job.share for job in active):
        st.caption(sentences.TEXT("FIRST_TIME"))


def offer_map(experts: np.ndarray) -> None:
    """Says that a layout is missing, and how to get it."""
    maps = Maps(page_context.RUNS)
    last = maps.latest_job(run=context.run.name, neighbours=settings.neighbours, distance=settings.distance)
    if last is not None and last.active:
        st.info(sentences.TEXT("UNTIL"))
        return
    what = f"UMAP with {settings.neighbours} neighbours and distance {settings.distance:g}"
    st.info(sentences.TEXT("MISSING", what=what))
    job_bar.offer_job(
        maps, last, (context.run, settings, experts), "map_compute",
        sentences.TEXT("COMPUTE"), "Compute it", "From three random starts, and once more for random numbers.",
    )  # fmt: skip


def select_clicked_expert() -> None:
    """A click chooses an expert."""
    points = st.session_state[KEY]["selection"]["points"]
    experts = [int(point["customdata"][0]) for point in points if point.get("customdata")]
    if experts:
        page_context.select_expert(experts[0])


def show_map() -> None:
    frame = pictures.map_marks(expert_map, table, labels, retrieved)
    figure = cache.cached_figure(charts.draw_map, frame, expert_map.placed, colour, palette, selected=focus)
    alt = (
        f"{expert_map.kind} map of {len(expert_map.experts):,} of {len(values):,} experts, coloured by "
        f"{offered[colour].lower()}. "
        f"Experts of person {context.user + 1}, the best first: {', '.join(map(str, retrieved))}."
    )
    page_elements.show_chart(KEY, figure, frame, sentences.MAP, alt, on_select=select_clicked_expert, selection_mode="points")
    sentence = sentences.TEXT("NUMBERED", person=context.user + 1)
    if len(expert_map.laid_out_experts) < len(values):
        sentence += " " + sentences.TEXT("SAMPLE", shown=len(expert_map.laid_out_experts), placed=int(expert_map.placed.sum()))
    st.caption(sentence)


def show_neighbours() -> None:
    row = table.iloc[focus]
    name = cache.expert_name(context.open_run, focus)
    called = f"**Expert {focus}** ({page_context.escape_markdown(name)})" if name else f"**Expert {focus}**"
    place = f"row {row['row']}, column {row['column']}"
    page_elements.show_expert_card(f"{called} is used by {row['load']:,} people. It stands in {place}.")
    near = trusting.neighbour_table(values, expert_map.experts, expert_map.xy, focus)
    st.markdown(f"**{near['true?'].sum()} of its {len(near)} neighbours** on the map are neighbours in the full numbers, too.")
    nearest = near.round(2)
    alt = f"The {len(nearest)} nearest neighbours of expert {focus} in the full numbers and on the map"
    page_elements.show_table("map_near_table", nearest, sentences.NEAR, alt, column_config=sentences.NEAR_COLUMNS)


def show_trust() -> None:
    """Say on top how much of the truth the picture keeps; below it every map as a table, and one of random numbers."""
    umap = store if expert_map.kind == "UMAP" else None
    method, laid = ("PCA", layouts.sample_experts(load, LAID_OUT)) if umap is None else ("UMAP", umap.experts)
    panel = cached.trust_table(context.open_run, file, settings, laid)
    agreement = None if umap is None else trusting.map_agreement(umap, settings, int(panel["neighbours"].iloc[0]))
    sentence, doubts = sentences.describe_trust(panel, method, agreement)
    with headline:
        st.markdown(f"{sentence} {alike}")
    with st.expander("How sure?", icon=":material/balance:"):
        st.markdown("\n\n".join([*doubts, colours]))
        left_column, right_column = st.columns([3, 2], gap="medium")
        with left_column:
            table_shown = panel.assign(seed=panel["seed"].astype("string").fillna("")).rename(
                columns={"trust": "trustworthiness"}
            )
            if panel["seed"].isna().all():  # PCA needs none
                table_shown = table_shown.drop(columns="seed")
            page_elements.show_table(
                "map_trust", table_shown.round(3), sentences.TRUST, f"How many neighbours {len(panel)} maps keep"
            )
        with right_column:
            noise = None if umap is None else umap.get(settings, 0, "null")
            if noise is None:
                noise = layouts.project_pca(layouts.random_like(values[laid]))
            st.markdown(f"**The same {method} of random numbers**")
            alt = f"{method} map of {len(noise):,} lists of random numbers"
            st.plotly_chart(
                cache.cached_figure(charts.draw_null_map, noise, palette), key="map_null", config=plot.CONFIG, alt=alt
            )


context = page_context.require_context()
page_elements.require_experts(context, TITLE)
page_elements.show_title(TITLE)
headline = st.container()
st.write(sentences.TEXT("IDEA", width=context.model.config.width))
file = context.run.path / layouts.FOLDER / layouts.STORE
values, store, table = (
    cached.expert_values(context.open_run),
    cached.read_layouts(context.open_run, file),
    cached.expert_table(context.open_run, len(context.run.snapshot_files())),
)
load, palette = table["load"].to_numpy(), page_context.theme_palette()
retrieved = {int(e): rank for rank, e in enumerate(cache.route_everybody(context.open_run).experts[context.user], 1)}
strongest = cache.strongest_expert(context.open_run, context.user)
focus = context.expert if context.expert is not None else strongest if strongest is not None else next(iter(retrieved))
settings, start = Settings(), 0
with page_elements.place_in_row("top"):
    layout = choose_one("Map", LAYOUTS, key="map_layout", width="content")
    offered = pictures.colour_choices(table)
    first = next(name for name in ("name", "load") if name in offered)
    colour = choose_from_list("Colour", offered, key="map_colour", first=first, width=260)
if layout == "umap":
    with page_elements.place_in_row("top"):
        settings = Settings(
            choose_one("Neighbours", NEIGHBOURS, key="map_near", default=settings.neighbours, width="content"),
            choose_one(
                "Distance", DISTANCES, key="map_dist", default=settings.distance, format_option="{:g}".format, width="content"
            ),
        )
        start = choose_one("Random start", SEEDS, key="map_seed", width="content")
watch_maps()
expert_map = compute_map()
labels = pictures.colour_labels(table, colour)
left_column, right_column = st.columns(2, gap="medium")
with left_column:
    show_map()
with right_column:
    show_neighbours()
region = cached.measure_region(context.open_run, expert_map.laid_out_experts, labels[expert_map.laid_out_experts])
alike, colours = sentences.describe_regions(labels.dtype.kind in "OUS", region)
show_trust()
page_elements.show_footer(
    "python -m elastic_core.services.map.compute checkpoints",
    *("--run", context.run.name, "--neighbours", settings.neighbours, "--distance", f"{settings.distance:g}"),
    map_layout=layout,
    map_colour=colour,
    expert=focus,
)
