"""The answer to a stop's question, measured on the run and the person in view."""

from elastic_core.errors import InputError
from elastic_core.services.tour.answers import Answer, TourAsked
from pages.frame import shell
from pages.kit import cache
from pages.tour.steps import Step


def measured(step: Step) -> Answer | None:
    """Return the answer; None where the run has no experts and the question is about them."""
    now = shell.context()
    if step.memory and not now.model.retrieves:
        return None
    traffic = cache.traffic(now) if now.model.retrieves else None
    try:
        return step.answer(TourAsked(now.run, now.model, now.dataset, now.user, traffic, shell.RUNS))
    except InputError as error:
        return Answer(None, f"It could not be measured here: {error}")
