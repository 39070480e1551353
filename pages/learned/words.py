"""What the page says about its verdicts."""

from pages.kit.view import About

FINDINGS = About(
    "What can be said from the runs at hand, and how sure is it?",
    "Differences under `full` as on Results: paired, with the noise of people and training seeds, p after Holm’s adjustment for "
    "all that is asked beside it. Experts: adjusted mutual information (AMI: 1 is all) of an event’s expert and its interest, "
    "also with keys or values broken; over trainings by Student’s t. R²: how well experts tell log length and genres.",
    "“Not known” is not “no”: the sentence says which difference would have been found four times out of five. A yes holds for "
    "these data, settings and seeds.",
    test="tests/test_learned.py::test_every_sentence_is_what_the_runs_say",
)
