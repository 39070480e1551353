"""What the Results page says about its tables."""

from pages.kit.view import About

STANDINGS = About(
    "What did every system reach, and is it more than a baseline reaches without training?",
    "The mean over people and training seeds of the test, from the ranks that each run kept when it was tested, once. ± 95% is "
    "over people; `spread` is the standard deviation of NDCG@10 over seeds. “Beside the baseline” is the paired difference to "
    "the better of the systems that need no training (most popular items, co-occurrence), over people and seeds; without a "
    "remark it may be claimed: p below 0.05 after Holm’s adjustment for all rows. Seconds are of a whole training by the clock.",
    "A table has one protocol, and rows of two protocols cannot be compared. Seconds hold what else the machine did and mean "
    "something on one device only; peak memory of a training was not recorded, weights are the file’s size. A paper’s value "
    "has another protocol and often other data.",
    test="tests/test_results.py::test_the_tables_are_those_of_the_report",
)
FOREST = About(
    "Is A better than each of the others, or is it chance?",
    "For every person NDCG@10 of A minus that of the other, mean over people and training seeds; the line is the 95% interval "
    "over both. A dot is filled where a difference may be claimed: both sides have several seeds or need no training, and p "
    "stays below 0.05 after Holm’s adjustment for the rows of its family that could be claimed. If nothing distinguished two "
    "systems, the dot would lie on zero, and one family in twenty would hold a filled one.",
    "Hollow does not mean equal. Where a side was trained once, its interval holds people only, so it is too narrow. Two rows "
    "are not compared with each other here.",
    test="tests/test_results.py::test_a_claim_needs_the_adjusted_p_and_one_run_claims_nothing",
)
