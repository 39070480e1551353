"""What the Results page says about its tables."""

from pages.kit.view import About

STANDINGS = About(
    "Is a system more than counting?",
    "Mean over people and training seeds, from ranks kept at the test. “Beside the best baseline”: paired difference to the "
    "better system without training; no remark: may be claimed, p below 0.05 after Holm’s adjustment for all rows. Your own "
    "trainings stand beside the baselines of their card.",
    "Never compare two protocols. Seconds hold what else the machine did, on one device only; training memory was not recorded, "
    "weights are the file’s size.",
    test="tests/test_results.py::test_the_tables_are_those_of_the_report",
)
FOREST = About(
    "Is A better, or is it chance?",
    "Paired over people and training seeds, 95%. Filled: may be claimed; both sides have several seeds or need none, p below "
    "0.05 after Holm’s adjustment within its family. By chance one family in twenty holds one.",
    "Hollow is not equal. With a side trained once it holds people only, too narrow. Rows are not compared with each other.",
    test="tests/test_results.py::test_a_claim_needs_the_adjusted_p_and_one_run_claims_nothing",
)
