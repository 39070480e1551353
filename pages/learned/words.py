"""What the page says about its verdicts."""

from pages.kit.view import About

FINDINGS = About(
    "How sure is it?",
    "Differences as on Results (`full`): paired, people and training seeds drawn again, p after Holm’s adjustment for all asked "
    "beside it. Experts: adjusted mutual information (AMI, 1: all) of an event’s expert and its interest, also with keys or "
    "values broken; over trainings by Student’s t. R²: experts tell log length, genres.",
    "“Not known” is not “no”; detectable: would have been found four times out of five. A yes holds for these data, settings and "
    "seeds.",
    test="tests/test_learned.py::test_every_sentence_is_what_the_runs_say",
)
