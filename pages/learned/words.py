"""What the page says about its verdicts."""

from pages.kit.view import About

FINDINGS = About(
    "What can be said from the runs at hand, and how sure is it?",
    "Differences of NDCG@10 are those of the Results screen under `full`: paired over people, people and training seeds drawn "
    "again, p after Holm’s adjustment for all that is asked beside it. Speeds are the rows that the Speed screen opens with. "
    "What experts stand for is asked of the trained model and of the same model with keys or values broken; intervals over "
    "trainings are by Student’s t. Every sentence is written from these numbers when the page is drawn.",
    "“Not known” is not “no”: the sentence says which difference would have been found four times out of five. A yes holds for "
    "these data, settings and seeds, not for recommenders at large.",
    test="tests/test_learned.py::test_every_sentence_is_what_the_runs_say",
)
