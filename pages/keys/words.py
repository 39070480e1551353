"""The words of the page on product keys, for readers who learned English at school. `{names}` stand for the picture's numbers."""

from typing import Any

TITLE = "How can a few comparisons find the best experts, exactly?"
TOY, OWN, MILLION = "4 × 4", "This person", "A million"

IDEA = {
    TOY: "Find the best of **16 experts**. A key is a row part beside a column part. So score = row score + column score.",
    OWN: "{whose} searches in the same way, among the **{all} experts** of this run ({side} × {side}). {short} short dot "
    "products replace {all} long ones.",
    MILLION: "The same search among **{all} random keys**: {short} short dot products instead of a million long ones. From "
    "step *Pair* on, the size does not matter any more.",
}
AFTER = "Next: person {person}’s search among {all} experts."
VOTING = "This is the search of one {one}. Every {one} of the history searches like this; step *Vote* adds the searches up."
FEWER = "In the run itself each looks for its {k} best."

SAYS = {
    "Split": "An item’s vector times a learned matrix is its **query**, {d} numbers: **q₁** for rows, **q₂** for columns.",
    "Score": "Every row has a learned short key of {half} numbers, and so has every column. q₁ is compared with the {side} row "
    "keys, q₂ with the {side} column keys: **{short} short dot products**.",
    "Keep": "Only the **{m} best rows** and the **{m} best columns** stay. A weaker row cannot win: {m} better rows beat "
    "it in every column.",
    "Keep all": "You want the best {k}, and there are only {side} rows and {side} columns. So all of them stay.",
    "Pair": "Sorted, the best first. 2nd row, 3rd column: 2 × 3 = 6 squares are at least as good, itself counted. Only {k} can "
    "win: a number above {k} is out. **Squares that remain: {pairs}.**",
    "Pair one": "The best row meets the best column. No other square can be better. **Squares that remain: {pairs}.**",
    "Win": "Only in these squares ({pairs}) we add row and column. The **{k} largest sums** win. Then all squares go back "
    "to their real places.",
    "Gather": "The place of a winner is an address: row {row}, column {column} is expert {row} × {side} + {column} = "
    "**{expert}**. There lies the **expert**: a learned vector of {d} numbers, the same for everybody. Only {k} of {all} are "
    "fetched.",
}  # fmt: skip
WEIGH = {
    "softmax": "A better score counts more. A softmax turns the {k} scores into shares of 100%. Each expert’s vector is "
    "multiplied by its own share: its numbers get smaller.",
    "vote": "Each {one} has one vote. A softmax of the scores splits it among the experts that it found ({k}).",
    "none": "This run has no gate: every winner counts the same, as the paper’s Algorithm 1 prints it.",
    "other": "A better score counts more. The run’s gate turns the {k} scores into weights, and each vector is multiplied by its "
    "weight.",
}
CLOSING = " **Next:** these experts read the history and rank all items. Journey shows how."
VOTE = (
    "Every {one} searches like this and splits its vote among {each}. Add up all votes. Some experts get votes from everybody: "
    "so the average person’s (in brackets) are taken off. The **{k} experts** with the highest rest are this person’s, on every "
    "page, and the rest is an expert’s share. {title} gave {split}."
)
MILLION_NOTE = "On this machine, just now: {halves:.1f} ms by halves, {whole:,.0f} ms one by one."

PICTURE: dict[str, Any] = {
    "steps": "Steps of the search", "back": "Back", "next": "Next", "play": "Play", "pause": "Pause",
    "counts": "Work so far", "halves": "by halves", "each": "one by one",
    "dots": "dot products", "multiplications": "multiplications", "pairs": "pairs looked at",
    "short": "{n} short", "long": "{n} long",
    "agree": "Brute force, all {long} one by one, finds the same {k}. So far: **{agreed} of {tried}** searches.",
    "wrong": "Brute force finds others: only **{agreed} of {tried}** searches agree.",
    "query": "query", "half": ["q₁: rows", "q₂: columns"], "row": "row", "column": "column", "expert": "expert",
    "square": "row {row}, column {column}", "at_least": "row place {i} × column place {j} = {all} squares at least as good",
    "dials": ["Black: query. Thin: keys. All have length 1.", "Small angle: high score."],
    "vectors": "the experts’ vectors", "shares": "share",
    "sliders": ["Turn q₁", "Turn q₂", "How many, k"],
    "dot": "Row {row}: {sum}",
    "bet": "Your bet: click the best square.", "betted": "Your bet: {square}.",
    "placed": "Your square ({square}) took place **{place}** of {k}.", "lost": "Your square ({square}) is not among the "
    "best {k}.",
    "rule": "First is always the best row with the best column.",
    "alt": "Grid of {side} × {side} experts with row scores on the left and column scores above, at step {step}.",
}  # fmt: skip

SURE = "Proofs"
EXACT = "The query above and random ones are searched by halves, and one by one against all {all} full keys."
EXACT_ONE = "The query above is searched by halves, and one by one against all {all} full keys."
CLOCK = "Double precision, processor time; equal scores count as ties."
NUMBERS = "All kept rows with all kept columns. The search adds only those that can win (row place × column place ≤ {k})."
CAREFUL = (
    "A high score says that the keys fit the query. It does not say that the expert helps: removing it on Start measures that. "
    "Neighbours in the grid share a row key or a column key, nothing else."
)
GATE = (
    "If the scores are not used after the search (the paper’s Algorithm 1), no gradient reaches the keys: they never learn. "
    "Multiply the experts by their scores: now gradient flows."
)
PRINTED = "Equation 7 prints q₁ for *both* halves. Taken literally, people who differ only in q₂ get the same experts."
