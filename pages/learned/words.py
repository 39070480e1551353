"""What the page says about its verdicts."""

from pages.kit.view import About

FINDINGS = About(
    "What can be said from the runs at hand, and how sure is it?",
    "Differences under `full` as on Results: paired, people and training seeds drawn again, p after Holm’s adjustment for all "
    "that is asked beside it. Experts are asked of the model and of itself with keys or values broken (adjusted mutual "
    "information, AMI: 1 is all), over trainings by Student’s t.",
    "“Not known” is not “no”: the sentence says which difference would have been found four times out of five. A yes holds for "
    "these data, settings and seeds.",
    test="tests/test_learned.py::test_every_sentence_is_what_the_runs_say",
)
