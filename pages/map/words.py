"""What the Memory map page says about its pictures."""

import pandas as pd
import streamlit as st

from pages.kit.view import About

MAP = About(
    "Do experts form regions?",
    "Value vectors by direction. PCA: the two directions of largest variance; UMAP: neighbourhoods (stored, fixed seed).",
    "Distances between clumps, sizes, densities on a UMAP and all axes mean little. Marks that touch may be far apart in "
    "truth: see the numbers below.",
    test="tests/test_projection.py::test_pca_is_centred_ordered_and_keeps_its_signs",
)
EPOCHS = About(
    "Did the regions grow while the model learned?",
    "Experts kept after some epochs. Aligned PCA turns and mirrors each epoch’s onto the next; aligned UMAP lays all out "
    "together, each expert tied to itself. Load is that epoch’s.",
    "Aligning hides small movements.",
    test="tests/test_projection.py::test_epochs_are_turned_onto_each_other",
)
NEAR = About(
    "Are map neighbours true neighbours?",
    "Left: nearest by angle between vectors, and their place on the map. Right: nearest on the map.",
    "Nearest need not be near: random vectors have cosines close to 0.",
    test="tests/test_projection.py::test_neighbours_beside_are_those_of_brute_force",
)
NEAR_COLUMNS = {
    "in truth": st.column_config.Column(width=64, help="Nearest in the original space"),
    "cosine": st.column_config.Column(width=58, help="1 = the same direction"),
    "map place": st.column_config.Column(width=76, help="Among the nearest on the map"),
    "on map": st.column_config.Column(width=60, help="Nearest on the map"),
    "true?": st.column_config.Column(width=52, help="Among the nearest in truth?"),
}
TRUST = About(
    "Are neighbourhoods kept on this map?",
    "Trustworthiness: 1 if all near on the map is near in truth, less the further false neighbours rank. Overlap: true "
    "neighbours kept. Random vectors of equal number and width, three seeds.",
    "High: neighbourhoods were kept, not that they mean anything. Hardly above random vectors: it shows the method.",
    formula=r"T = 1 - \frac{2}{nk(2n-3k-1)} \sum_i \sum_{j \in U_k(i)} (r(i,j) - k)",
    test="tests/test_projection.py::test_trust_of_the_identity_is_one_and_agrees_with_scikit_learn",
)
SET = About(
    "What have the chosen experts in common?",
    "All that is known of them.",
    "A set drawn on a map is close together there by construction.",
    test="tests/test_projection.py::test_a_set_is_tight_where_its_experts_point_the_same_way",
)


def regions(colour: str, text: bool, found: tuple[float, float, float], neighbours: int) -> str:
    """Do like experts lie together in the original space, in one sentence."""
    alike, low, high = found
    if text:
        number, chance = f"{alike:.1%} of the {neighbours} nearest share it", f"{low:.1%} to {high:.1%}"
    else:
        number, chance = f"an expert and its {neighbours} nearest correlate by {alike:.2f}", f"{low:.2f} to {high:.2f}"
    places = 3 if text else 2  # as they are shown: nobody reads "more than 5 to 9%" of 9%
    mine, least, most = (round(value, places) for value in found)
    where = "Yes, more" if mine > most else "No more" if mine >= least else "Less"
    return (
        f"Do experts of one colour lie together? **{where} than chance**: in the original space {number} (shuffled: {chance}, "
        f"95%)."
    )


def trusted(panel: pd.DataFrame, method: str, agreement: float | None) -> str:
    """The trust panel in two sentences."""
    mine = panel[(panel["map"] == method) & (panel["of"] == "experts")]
    null = panel[(panel["map"] == method) & (panel["of"] != "experts")]
    if mine.empty or null.empty:
        return ""
    best, noise, near = mine["overlap"].mean(), null["overlap"].mean(), int(panel["neighbours"].iloc[0])
    gain = (mine["trust"].min() - null["trust"].max()) / max(1 - null["trust"].max(), 1e-9)
    word = "clearly better than" if gain > 0.3 else "somewhat better than" if gain > 0.1 else "hardly better than"
    said = (
        f"This {method} keeps **{best:.0%}** of an expert’s {near} nearest (random vectors: {noise:.0%}), trustworthiness "
        f"**{mine['trust'].mean():.2f}** (random: {null['trust'].mean():.2f}): {word} a map of nothing."
    )
    if agreement is not None and method == "UMAP":
        said += f" Maps of three seeds agree on {agreement:.0%} of neighbours."
    return said
