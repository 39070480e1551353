"""What the Memory map page says about its pictures."""

import pandas as pd
import streamlit as st

from pages.kit.view import About

MAP = About(
    "Do experts form regions?",
    "Each mark is one expert’s value vector, compared by direction and flattened to two dimensions. PCA keeps the two directions "
    "of largest variance. UMAP keeps neighbourhoods: it was computed beforehand with a fixed seed and stored. Numbered marks: "
    "the experts that this person’s history retrieves, 1 = strongest.",
    "Distances between clumps, their sizes and their densities mean little on a UMAP, and axes mean nothing. Two marks that "
    "touch here may be far apart in the original space: see the table of neighbours and the trust panel.",
    test="tests/test_projection.py::test_pca_is_centred_ordered_and_keeps_its_signs",
)
EPOCHS = About(
    "Did the regions grow while the model learned?",
    "The run kept its experts after some epochs. Aligned PCA turns and mirrors each epoch’s PCA onto the next; aligned UMAP lays "
    "all epochs out together with every expert tied to itself. Load as a colour is that epoch’s.",
    "Aligning holds experts in place, so small movements are hidden, and each epoch’s PCA has its own axes before it is turned.",
    test="tests/test_projection.py::test_epochs_are_turned_onto_each_other",
)
NEAR = About(
    "Are its neighbours on the map its neighbours in truth?",
    "Left: the nearest experts by the angle between value vectors, and at which place they come on the map. Right: the "
    "nearest on the map, and whether they are among the truly nearest.",
    "A nearest expert need not be a near one: look at the cosine. In many dimensions random vectors have cosines close to 0.",
    test="tests/test_projection.py::test_neighbours_beside_are_those_of_brute_force",
)
NEAR_COLUMNS = {
    "in truth": st.column_config.Column(width=64, help="The nearest experts in the original space, the nearest first"),
    "cosine": st.column_config.Column(width=58, help="Of the two vectors: 1 = the same direction"),
    "map place": st.column_config.Column(width=76, help="Its place among the nearest on the map"),
    "on map": st.column_config.Column(width=60, help="The nearest experts on the map, the nearest first"),
    "true?": st.column_config.Column(width=52, help="Is the one on the map among the nearest in truth?"),
}
TRUST = About(
    "Can this picture be trusted?",
    "Trustworthiness is 1 if everything near on the map is near in the original space, less the further away false "
    "neighbours really rank. Overlap is the share of true nearest neighbours that the map keeps. The same for random vectors of "
    "equal number and width, put through the same PCA and the same UMAP, and for three seeds.",
    "A high number says that neighbourhoods were kept, not that they mean anything. A map that is hardly better than that of "
    "random vectors shows the method, not the memory.",
    formula=r"T = 1 - \frac{2}{nk(2n-3k-1)} \sum_i \sum_{j \in U_k(i)} (r(i,j) - k)",
    test="tests/test_projection.py::test_trust_of_the_identity_is_one_and_agrees_with_scikit_learn",
)
SET = About(
    "What have the chosen experts in common?",
    "Everything known about the experts of the chosen set.",
    "A set that was drawn on a map is close together on that map by construction.",
    test="tests/test_projection.py::test_a_set_is_tight_where_its_experts_point_the_same_way",
)


def regions(colour: str, text: bool, found: tuple[float, float, float], neighbours: int) -> str:
    """Do like experts lie together in the original space, in one sentence."""
    alike, low, high = found
    if text:
        number, chance = f"{alike:.1%} of a coloured expert’s {neighbours} nearest share its colour", f"{low:.1%} to {high:.1%}"
    else:
        number, chance = f"an expert and its {neighbours} nearest correlate by {alike:.2f}", f"{low:.2f} to {high:.2f}"
    places = 3 if text else 2  # as they are shown: nobody reads "more than 5 to 9%" of 9%
    mine, least, most = (round(value, places) for value in found)
    where = "Yes, more" if mine > most else "No more" if mine >= least else "Less"
    return (
        f"Do experts of one colour lie together? **{where} than chance**: in the original space {number}; with the colours "
        f"shuffled {chance} (95%)."
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
        f"**{mine['trust'].mean():.2f}** (random vectors: {null['trust'].mean():.2f}): {word} a map of nothing, and wrong about "
        f"{1 - best:.0%} of neighbours."
    )
    if agreement is not None and method == "UMAP":
        said += f" Maps of three seeds agree on {agreement:.0%} of neighbours."
    return said
