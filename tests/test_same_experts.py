"""One story: Start, Journey, Experts and the page on product keys name the same experts for the same person and run."""

import numpy as np
import pytest
from shipped import FOLDERS

from elastic_core.data import Dataset, load
from elastic_core.data.source_catalog import at_hand
from elastic_core.memory.routing import route_users
from elastic_core.models import can_retrieve
from elastic_core.runs import Run
from elastic_core.services.experts import overview
from elastic_core.services.keys import search, votes
from elastic_core.services.person.prediction import predict_user

RUNS = [run for run in map(Run, sorted(FOLDERS.glob("*-elastic*"))) if run.has_weights]
PEOPLE = 4
LOADED: dict[str, Dataset] = {}


def data_of(run: Run) -> Dataset:
    known = repr(run.config.data)
    if known not in LOADED:
        LOADED[known] = load(run.config.data)
    return LOADED[known]


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_every_page_names_the_same_experts_in_the_same_order(run: Run) -> None:
    if not at_hand(run.config.data.source):
        pytest.skip(f"{run.config.data.source} is not on this machine")
    data = data_of(run)
    model = run.model(data)
    if not can_retrieve(model):
        pytest.skip("its interests are the same for everybody: there is nothing to retrieve")
    people = np.linspace(0, data.histories.n_users - 1, PEOPLE).astype(np.int64)
    traffic = route_users(model, data, "test", users=people)
    for row, user in enumerate(people.tolist()):
        start = predict_user(model, data, user).active_experts
        journey = predict_user(model, data, user, n_events=int(data.readable_lengths()[user]))
        assert journey.experts == start, "Journey"
        assert overview.hot_experts(traffic, row)["expert"].tolist() == start, "Experts"
        if search.has_votes(model):
            keys = votes.vote_sums(votes.retrieve_by_vote(model, data, user))["expert"].dropna().tolist()
        else:
            keys = search.lesson_of_user(model, data, user).winner_rows["expert"].tolist()
        assert keys == start, "Product keys"
