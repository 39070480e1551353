"""What the Compare page says about its charts."""

from pages.kit.view import About

ACROSS = About(
    "Does the difference hold under other protocols?",
    "A minus B on the same candidates, person by person; the line is the 95% interval over people and training seeds.",
    "Sampled protocols are easier: never set one beside a `full` number. Hollow: a side was trained once, so training noise is "
    "not counted.",
    test="tests/test_versus.py::test_the_paired_difference_equals_a_loop",
)
DUEL = About(
    "For how many people is A ahead?",
    "A is ahead where it puts the true next item higher up among all unmet ones.",
    "Place 900 instead of 1,000 counts as a win, but nobody scrolls that far.",
    test="tests/test_versus.py::test_the_paired_difference_equals_a_loop",
)
FOREST = About(
    "Who is ahead among whom?",
    "The mean difference of each group with its 95% interval. Filled: may be claimed, so training noise is counted and p stays "
    "below 0.05 after Holm’s adjustment for all groups shown.",
    "By chance one interval in twenty leaves zero out. Genres overlap. A wide line means few people, not a weak effect.",
    test="tests/test_versus.py::test_a_forest_row_is_the_plain_mean_of_its_people",
)
PLACES = About(
    "Who gains, and who loses?",
    "A mark is a person: the place of the true next item among all unmet ones. Below the dotted line A is better; tinted are "
    "the first ten places.",
    "Marks outside both bands do not matter to a list of ten. People pile up: read the table for single ones.",
    test="tests/test_versus.py::test_extremes_are_the_people_with_the_largest_differences",
)
RUNS = About(
    "How good is every run on this data?",
    "Mean over people on the test split ± 1.96 standard errors, from ranks kept at the test.",
    "Overlapping intervals may hide a clear paired difference, and separate ones may be due to training seeds: compare in "
    "pairs. Read down, not across: columns are different questions.",
    test="tests/test_versus.py::test_shipped_runs_on_the_same_data_stand_in_one_table",
)
TRADE = About(
    "What does accuracy cost?",
    "Area: parameters, the item table included. Training seconds are the log’s, by the clock. Benchmark: this kind of model "
    "with random weights, at the measured length nearest to the run’s, in processor time.",
    "Training seconds hold whatever else the machine did: they rank no models, least of all across machines (point at a bubble).",
    test="tests/test_versus.py::test_shipped_runs_on_the_same_data_stand_in_one_table",
)
LISTS = About(
    "What are the lists like?",
    "Everybody’s ten unmet items with the highest scores, beside what people chose next.",
    "More coverage is not better by itself: random lists cover everything. The choices’ coverage is that of one item a person.",
    test="tests/test_versus.py::test_list_properties_against_loops",
)
