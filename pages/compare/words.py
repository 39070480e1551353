"""What the Compare page says about its charts."""

from pages.kit.view import About

ACROSS = About(
    "Does it hold under other protocols?",
    "A minus B on the same candidates, person by person; line: 95% over people and training seeds.",
    "Sampled protocols are easier: never set one beside `full`. Hollow: a side trained once, training noise not counted.",
    test="tests/test_versus.py::test_the_paired_difference_equals_a_loop",
)
DUEL = About(
    "For how many is A ahead?",
    "Place of the true next item among all unmet ones.",
    "900 instead of 1,000 counts as a win, but nobody scrolls that far.",
    test="tests/test_versus.py::test_the_paired_difference_equals_a_loop",
)
FOREST = About(
    "Who is ahead among whom?",
    "Mean difference of each group, 95%. Filled: may be claimed; training noise counted, p below 0.05 after Holm’s adjustment "
    "for all groups shown.",
    "By chance one interval in twenty leaves zero out. Genres overlap. Wide: few people, not a weak effect.",
    test="tests/test_versus.py::test_a_forest_row_is_the_plain_mean_of_its_people",
)
PLACES = About(
    "Who gains, who loses?",
    "A mark is a person: place of the true next item among all unmet ones. Below the dotted line A is better; tinted: the first "
    "ten.",
    "Marks outside both bands touch no list of ten. People pile up: the table has single ones.",
    test="tests/test_versus.py::test_extremes_are_the_people_with_the_largest_differences",
)
RUNS = About(
    "How good is every run?",
    "Test, mean over people ± 1.96 standard errors, from ranks kept.",
    "Overlap may hide a clear paired difference, and seeds the reverse: compare in pairs. Read down: columns are different "
    "questions.",
    test="tests/test_versus.py::test_shipped_runs_on_the_same_data_stand_in_one_table",
)
TRADE = About(
    "What does accuracy cost?",
    "Area: parameters, item table included. Training seconds: the log’s, by the clock. Benchmark: this kind of model, random "
    "weights, measured length nearest the run’s, processor time.",
    "Training seconds hold whatever else the machine did: they rank no models, least across machines (point at a bubble).",
    test="tests/test_versus.py::test_shipped_runs_on_the_same_data_stand_in_one_table",
)
LISTS = About(
    "What are the lists like?",
    "Everybody’s ten best unmet items, beside what people chose next.",
    "More coverage is not better: random lists cover everything. The choices’ is of one item a person.",
    test="tests/test_versus.py::test_list_properties_against_loops",
)
