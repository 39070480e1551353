"""What the Results page says about its tables."""

from pages.kit.view import About

STANDINGS = About(
    "Is a system better than mere counting?",
    "Mean over people and training seeds, from ranks kept at the test. “Beside the best baseline”: the paired difference to the "
    "better of the systems that need no training. Without a remark it may be claimed: p below 0.05 after Holm’s adjustment for "
    "all rows. Trainings of your own stand beside the baselines of their result card.",
    "Rows of two protocols cannot be compared. Seconds hold what else the machine did and compare on one device only; memory "
    "of a training was not recorded, weights are the file’s size.",
    test="tests/test_results.py::test_the_tables_are_those_of_the_report",
)
FOREST = About(
    "Is A better than each of the others, or is it chance?",
    "Paired over people and training seeds, with 95% intervals. Filled: may be claimed, so both sides have several seeds or need "
    "none, and p stays below 0.05 after Holm’s adjustment within its family. By chance one family in twenty holds a filled dot.",
    "Hollow is not equal. Where a side was trained once, the interval holds people only and is too narrow. Rows are not compared "
    "with each other. A system tuned less may look worse than it is: of the shipped ones ELASTIC, its slots and SASRec were "
    "tuned most.",
    test="tests/test_results.py::test_a_claim_needs_the_adjusted_p_and_one_run_claims_nothing",
)
