"""Latents of an autoencoder as experts: planted directions found again, edits that do what they say, and the model left alone."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from elastic_core import models, recipes
from elastic_core.__main__ import main
from elastic_core.core.batches import reading_batch
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.memory.latents import Dictionary, Fit, Latents, _explained, _learn, fit_latents
from elastic_core.models import Recommender
from elastic_core.runs import Run
from elastic_core.services.experts import ablation, knobs

USERS = np.arange(7)


def test_planted_directions_are_found_again() -> None:
    """States that are sums of 2 of 24 directions; by chance the best of 40 random directions lies at a cosine of about 0.5."""
    torch.manual_seed(0)
    truth = functional.normalize(torch.randn(24, 16), dim=1)
    rng = np.random.default_rng(0)
    weights = np.zeros((3_000, 24), np.float32)
    for row in weights:
        row[rng.choice(24, 2, replace=False)] = rng.uniform(0.5, 1.5, 2)
    states = torch.from_numpy(weights) @ truth
    dictionary = Dictionary(16, 40, 2)
    before = _explained(dictionary, states)
    chance = (truth @ dictionary.directions.detach().T).max(1).values.mean()
    _learn(dictionary, states, 150, rng)
    found = (truth @ dictionary.directions.detach().T).max(1).values
    assert _explained(dictionary, states) > 0.9 > before + 0.3
    assert found.mean() > 0.9 and chance < 0.7


@pytest.fixture(scope="module")
def told(tiny: tuple[Recommender, Dataset, Run]) -> tuple[Latents, Fit, Dataset]:
    made, found = fit_latents(tiny[0], tiny[1], side=5, k=3, epochs=20)
    return made, found, tiny[1]


def test_without_an_edit_it_is_the_model_itself(
    told: tuple[Latents, Fit, Dataset], tiny: tuple[Recommender, Dataset, Run]
) -> None:
    made, found, dataset = told
    batch = reading_batch(dataset, USERS, dataset.ends("test")[USERS], made.length)
    state = tiny[0].last_state(batch)
    assert torch.equal(made.last_state(batch), state) and torch.equal(made.score(batch), tiny[0].score(batch))
    torch.testing.assert_close(made.last_state(batch, knobs.turns(made, np.ones((7, 3)), np.full(7, -1))), state)
    assert 0 < found.held_out <= 1 and found.explained > 0.15 and 0 < found.used <= 1 and found.states > 1_000


@torch.no_grad()
def test_edits_move_the_state_by_what_the_latent_told(told: tuple[Latents, Fit, Dataset]) -> None:
    made, _, dataset = told
    batch = reading_batch(dataset, USERS, dataset.ends("test")[USERS], made.length)
    state, found = made.last_state(batch), made.retrieve(batch)
    told_by = [float(made.dictionary.scale) * found.gates[:, [r]] * made.expert_values()[found.experts[:, r]] for r in range(3)]
    torch.testing.assert_close(made.last_state(batch, ablation.drop(np.full(7, 1))), state - told_by[1], atol=1e-5, rtol=1e-5)
    turned = made.last_state(batch, knobs.turns(made, np.tile([1.0, 1.0, 4.0], (7, 1)), np.full(7, -1)))
    torch.testing.assert_close(turned, state + 3 * told_by[2], atol=1e-5, rtol=1e-5)
    lent = made.last_state(batch, knobs.turns(made, np.ones((7, 3)), np.full(7, 4)))
    given = float(made.dictionary.scale) * found.gates[:, [2]] * made.expert_values()[4]
    torch.testing.assert_close(lent, state - told_by[2] + given, atol=1e-5, rtol=1e-5)
    centred = state[3] / made.dictionary.scale - made.dictionary.bias
    slow = [float(torch.dot(centred, made.dictionary.encoder[e])) for e in range(25)]
    slow = [max(0.0, value + float(made.dictionary.threshold[e])) for e, value in enumerate(slow)]
    assert set(found.experts[3].tolist()) == set(np.argsort(slow)[-3:].tolist())


def test_a_mixture_has_no_state_to_tell(small_world: Dataset) -> None:
    slots = models.build(recipes.toy("elastic-slots").model, small_world.catalog)
    with pytest.raises(InputError, match="no single state"):
        Latents(slots, small_world)


def test_the_command_sets_both_side_by_side(tiny_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["latents", str(tiny_runs / "tiny"), "--side", "5", "--active", "3"]) == 0
    said = capsys.readouterr().out
    assert "its own experts" in said and "latents" in said and "odd events ~ even events" in said
    assert main(["latents", str(tiny_runs / "tiny-peer"), "--side", "1"]) == 2
    assert "--side must lie in 2" in capsys.readouterr().err
