"""Which experts one user's history retrieves, and where they stand in the memory."""

import numpy as np
import pandas as pd
import torch

from elastic_core.core.batches import reading_batch
from elastic_core.core.contract import Recommender, as_retrieving_model
from elastic_core.core.histories import Dataset
from elastic_core.errors import InputError
from elastic_core.memory.routing import route_users


def expert_grid(n_subkeys: int) -> pd.DataFrame:
    """All experts of a memory: expert, row, column."""
    numbers = np.arange(n_subkeys**2)
    return pd.DataFrame({"expert": numbers, "row": numbers // n_subkeys, "column": numbers % n_subkeys})


@torch.inference_mode()
def user_experts(model: Recommender, dataset: Dataset, user: int) -> pd.DataFrame:
    """The experts that a user's history before the test retrieves, best first: expert, row, column, row_score, column_score,
    score (what they are chosen by: the sum of the two, where nothing votes), load (how many users retrieve it), rank, gate. Where
    events vote also votes (the expert's part of all votes of the user) and mean_votes (of the average user).

    `user` is a number from 0. Raises InputError for a model without a memory of its own for everybody."""
    users = np.array([user])
    retrieved = as_retrieving_model(model).retrieve(
        reading_batch(dataset, users, dataset.split_ends("test")[users], model.length)
    )
    (rows, columns), numbers = retrieved.halves[0].numpy(), retrieved.experts[0].numpy()
    if not len(rows):
        raise InputError("this run's experts are the same for everybody: it has no keys to look up")
    table = expert_grid(len(rows)).iloc[numbers].reset_index(drop=True)
    table = table.assign(
        row_score=rows[table["row"]], column_score=columns[table["column"]], score=retrieved.all_scores[0].numpy()[numbers],
        load=route_users(model, dataset, "test").load[numbers], rank=np.arange(len(numbers)) + 1,
        gate=retrieved.gates[0].numpy().astype(float),
    )  # fmt: skip
    if retrieved.votes is None or retrieved.ballots is None or (mean := retrieved.ballots.mean_vote_share) is None:
        return table
    return table.assign(votes=retrieved.votes[0].numpy()[numbers].astype(float), mean_votes=mean.numpy()[numbers].astype(float))
