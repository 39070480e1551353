"""What the Compare page says about its charts."""

from pages.kit.view import About

ACROSS = About(
    "How large is the difference, and does it hold under other ways to rank?",
    "For every person the metric of A minus that of B, on the same candidates; the dot is the mean, the line the 95% "
    "interval, from drawing people and training seeds again. `full` ranks the true next item against all unseen items; "
    "`full-seen` also against seen ones; `pop100` and `uniform100` against about 100 drawn ones.",
    "The sampled protocols give higher numbers and are easier; never set one beside a `full` number. Where a side was "
    "trained once, its training noise is not counted: the dots stay hollow, and another training may land elsewhere.",
    test="tests/test_versus.py::test_the_paired_difference_equals_a_loop",
)
DUEL = About(
    "For how many people does A’s list have the true next item higher up?",
    "The place of each person’s held-out item among all items they have not seen, with A and with B.",
    "A place of 900 instead of 1,000 counts as a win here, but nobody scrolls that far. The metric above counts only the top.",
    test="tests/test_versus.py::test_the_paired_difference_equals_a_loop",
)
FOREST = About(
    "Who is ahead among whom?",
    "People are grouped by the length of their history, by how popular their next item is, by whether it is cold, and by its "
    "genres. Each line is the mean difference of the group with its 95% interval; a dot is filled where something may be "
    "claimed: the noise of training is counted and p stays below 0.05 after Holm’s adjustment for all groups shown.",
    "With twenty groups one interval without zero is expected by chance alone; such a dot stays hollow. Genres overlap, so their "
    "lines are not independent. A wide line means few people, not a weak effect.",
    test="tests/test_versus.py::test_a_forest_row_is_the_plain_mean_of_its_people",
)
PLACES = About(
    "Who gains and who loses?",
    "One mark a person: the place of the true next item with B (across) and with A (up), among all unseen items, "
    "logarithmic. Below the dotted line A is better. Tinted: the first ten places of either.",
    "Marks far from both tinted bands do not matter to a list of ten. People pile up; read the table for single ones.",
    test="tests/test_versus.py::test_extremes_are_the_people_with_the_largest_differences",
)
RUNS = About(
    "How good is every run on this data?",
    "The mean of the metric over people on the test split ± 1.96 standard errors, from the ranks that each run kept when it was "
    "tested, once.",
    "Intervals of two runs may overlap although the paired difference is clear, and the other way round for seeds: compare "
    "in pairs.",
    test="tests/test_versus.py::test_shipped_runs_on_the_same_data_stand_in_one_table",
)
TRADE = About(
    "What does accuracy cost?",
    "Any two quantities of the tested runs on this data; the bubble’s area is the number of parameters. Training seconds are "
    "from the run’s own log, by the clock. Coverage, popularity and scoring time need everybody’s ten. The benchmark is of the "
    "kind of model (random weights) at the measured length nearest to the run’s, in time of the processor.",
    "Training seconds hold whatever else the machine did at that time: two runs of one model can lie far apart, so they rank no "
    "models; nor can those of different machines be compared (point at a bubble). Parameters include the item table.",
    test="tests/test_versus.py::test_shipped_runs_on_the_same_data_stand_in_one_table",
)
LISTS = About(
    "What are the lists like, right or wrong?",
    "The ten unseen items with the highest scores, for everybody. Coverage: share of the catalogue in anybody’s ten. "
    "Popularity: mean training events of a recommended item. Top tenth: share of recommendations from the most popular "
    "tenth. Last column: what people really chose next.",
    "More coverage is not better by itself: random lists cover everything. The choices’ own coverage is that of one item a "
    "person.",
    test="tests/test_versus.py::test_list_properties_against_loops",
)
