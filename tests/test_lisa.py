"""LISA against its equations, written out in loops; codes and histograms; a stream without end."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from elastic_core import models
from elastic_core.core.batches import Batch
from elastic_core.core.config import TrainConfig
from elastic_core.core.contract import Recommender
from elastic_core.core.objective import AllConfig
from elastic_core.core.step import Optimization
from elastic_core.core.stream import open_stream
from elastic_core.data import Dataset
from elastic_core.errors import InputError
from elastic_core.objectives import build as objective
from elastic_core.peers.lisa import Layer, Lisa, LisaConfig, LisaStream, final_counts, prefix_counts
from elastic_core.peers.parts.codebooks import TEMPERATURE, Codebooks
from elastic_core.recipes import toy
from elastic_core.runs import Run
from elastic_core.runs.initial_weights import initial_weights
from elastic_core.runs.training import train

N_ITEMS = 40
FORMS = {
    "base": {},
    "soft": {"form": "soft"},
    "mini": {"form": "mini", "codewords": 3, "target_codewords": 9},
    "no fading": {"decay": 0.0},
    "plain": {"form": "plain"},
    "frozen": {"form": "frozen"},
}
forms = pytest.mark.parametrize("form", FORMS)
Coded = tuple[list[int], list[Tensor], Tensor]


def lisa(n_items: int = N_ITEMS, **settings: object) -> Lisa:
    torch.manual_seed(0)
    shape = {"length": 24, "width": 8, "layers": 2, "dropout": 0.0, "codebooks": 3, "codewords": 6, **settings}
    model = models.build(LisaConfig(**shape), n_items)  # type: ignore[arg-type]
    with torch.no_grad():  # far from the start, so that nothing hides behind a zero, a one or an identity
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn_like(parameter) * (parameter.std(correction=0) + 0.3 * (parameter.ndim == 1))
    assert isinstance(model, Lisa)
    return model.eval()


def padded(lengths: list[int], columns: int, seed: int = 0) -> Tensor:
    items = torch.randint(1, N_ITEMS + 1, (len(lengths), columns), generator=torch.Generator().manual_seed(seed))
    return items * (torch.arange(columns) >= columns - torch.tensor(lengths)[:, None])


def reading(items: Tensor) -> Batch:
    return Batch(items, items, padded=bool((items == 0).any()))


# --- the slow twin ---------------------------------------------------------------------------------------------------


def coded(books: Codebooks, x: Tensor) -> Coded:
    """One vector in words: codes, how much each word of each codebook counts, and the sum."""
    chosen, counts, total, rest = [], [], torch.zeros_like(x), x
    for words in books.words:
        likeness = torch.stack([rest @ books.similarity @ word for word in words]) / TEMPERATURE
        code = int(likeness.argmax())
        share = likeness.exp() / likeness.exp().sum() if books.soft else functional.one_hot(torch.tensor(code), len(words)).to(x)
        word = sum(s * w for s, w in zip(share, words, strict=True))
        chosen.append(code)
        counts.append(share)
        total, rest = total + word, rest - word
    return chosen, counts, total


def coded_item(model: Lisa, item: int) -> Coded:
    """An item in words of the first layer: of its vector, or those that it was given."""
    books = model.codebooks
    if isinstance(books, Codebooks):
        return coded(books, model.events.items.weight[item] * math.sqrt(model.config.width))
    chosen = books.chosen[item].tolist()
    shares = [functional.one_hot(torch.tensor(code), books.words.shape[1]).to(books.words) for code in chosen]
    return chosen, shares, torch.stack([words[code] for code, words in zip(chosen, books.words, strict=True)]).sum(0)


def layer_twin(
    layer: Layer, books: Codebooks, codes: list[tuple[list[int], list[Tensor], Tensor]], xs: list[Tensor]
) -> list[Tensor]:
    """Eq. 11 event by event: histograms by counting, a softmax of exp(inner products) weighted by them."""
    attention, out, d = layer.attention, [], len(xs[0])
    for t, x in enumerate(xs):
        y, reach = torch.zeros_like(x), range(t + 1)
        for b, words in enumerate(books.words):
            asks = words[codes[t][0][b]] @ attention.query[b]
            weights, mixed = [], []
            for w, word in enumerate(words):
                count = sum(math.exp(-attention.decay * abs(t - j)) * float(codes[j][1][b][w]) for j in reach)
                weights.append(count * math.exp(float(asks @ (word @ attention.key[b])) / math.sqrt(d)))
                mixed.append(word @ attention.value[b])
            y = y + sum(weight / sum(weights) * value for weight, value in zip(weights, mixed, strict=True))
        out.append(layer.feed_forward((x + y)[None])[0])
    return out


def twin(model: Lisa, items: list[int]) -> Tensor:
    """States of one history without padding, `[N, d]`."""
    scale, table = math.sqrt(model.config.width), model.events.items.weight
    codes = [coded_item(model, item) for item in items]
    xs = [table[item] * scale for item in items] if model.config.form == "plain" else [total for *_, total in codes]
    for i, layer in enumerate(model.layers):
        assert isinstance(layer, Layer)
        books = layer.codebooks or model.codebooks
        if i:
            codes = [coded(books, layer.norm(x)) for x in xs]  # type: ignore[misc]
        xs = layer_twin(layer, books, codes, xs)
    return model.norm(torch.stack(xs))


@forms
@torch.no_grad()
def test_every_form_is_its_equations_in_loops(form: str) -> None:
    model = lisa(**FORMS[form]).double()
    items = padded([12, 5, 1], 12)
    found = model(reading(items)).states
    for row, n in enumerate((12, 5, 1)):
        torch.testing.assert_close(found[row, 12 - n :], twin(model, items[row, 12 - n :].tolist()))
    books, table = model.target_codebooks, model.scorer().table
    for item in (1, 7, N_ITEMS):
        plain = model.events.items.weight[item]
        frozen = model.config.form == "frozen"
        vector = coded_item(model, item)[2] if frozen else plain if books is None else coded(books, plain * math.sqrt(8))[2]
        wanted = vector if books is None else vector / math.sqrt(8)
        torch.testing.assert_close(table[item], wanted)


# --- histograms ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decay", [0.0, 0.1, 1.0])
def test_histograms_of_long_histories_neither_vanish_nor_overflow(decay: float) -> None:
    """3,000 events in float32, where e^-0.1t alone is nothing after 870; and the gradient of a sum over all of them."""
    counted = functional.one_hot(torch.randint(4, (1, 3_000, 2)), 4).float().requires_grad_()
    found = prefix_counts(counted, decay)
    exact, state = [], torch.zeros(1, 2, 4, dtype=torch.float64)
    for t in range(3_000):
        state = math.exp(-decay) * state + counted[:, t].detach().double()
        exact.append(state)
    torch.testing.assert_close(found, torch.stack(exact, 1).float(), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(final_counts(counted, decay), found[:, -1], atol=1e-5, rtol=1e-4)
    (gradient,) = torch.autograd.grad(found[..., 0].sum(), counted)
    later = torch.arange(3_000, 0, -1, dtype=torch.float64)
    wanted = later if decay == 0 else (1 - torch.exp(-decay * later)) / (1 - math.exp(-decay))
    torch.testing.assert_close(gradient[0, :, 1, 0], wanted.float(), rtol=1e-4, atol=1e-4)


# --- codes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("soft", [False, True])
def test_the_step_back_through_codes_is_that_of_the_softmax(soft: bool) -> None:
    """One codebook. Forward the best word alone (or their mixture), backward in both cases p ⊙ (g - p·g)."""
    torch.manual_seed(0)
    books = Codebooks(6, 1, 5, 1.0, 1.0, soft).double()
    x = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
    found = books(x)
    assert torch.equal(found.shares.detach().argmax(-1), found.chosen)
    if not soft:
        assert torch.equal(found.vectors, decode(found.chosen, books.words)) and set(found.shares.unique().tolist()) == {0.0, 1.0}
    goal = torch.randn(4, 6, dtype=torch.float64)
    (gradient,) = torch.autograd.grad((found.vectors * goal).sum(), x)
    p = (x @ books.similarity @ books.words[0].T / 0.7).softmax(-1)
    g = goal @ books.words[0].T
    wanted = (p * (g - (p * g).sum(-1, keepdim=True))) @ (books.words[0] @ books.similarity.T) / 0.7
    torch.testing.assert_close(gradient, wanted)


def test_codes_of_another_model_s_items_are_its_table_in_sums_of_words(
    tiny_peer: tuple[Recommender, Dataset, Run], tmp_path: Path
) -> None:
    """A training that begins with a run of SASRec: with a word for every item a sum of words is its row; with few words every
    further codebook leaves less of it. Codes stay as they were, words learn, and what fits no codes is refused in a sentence."""
    peer, world, first = tiny_peer
    table, n = peer.scorer().table.detach(), world.catalog.n_items
    settings = replace(toy("lisa").override("model.form=frozen", "train.epochs=1"), data=first.config.data)
    exact = initial_weights(first, settings.override(f"model.codewords={n}").model, world)
    torch.testing.assert_close(exact.scorer().table.detach()[1:], table[1:], atol=1e-6, rtol=1e-5)
    unexplained = []
    for books in (1, 2, 4):
        few = settings.override(f"model.codebooks={books}", "model.codewords=6").model
        summed = initial_weights(first, few, world).scorer().table.detach()
        unexplained.append(float((summed - table)[1:].norm() / table[1:].norm()))
    assert 1 > unexplained[0] > unexplained[1] > unexplained[2] > 0
    run = train(settings, world, tmp_path / "lisa", begin=first)
    begun, learned = initial_weights(first, settings.model, world), run.model()
    assert isinstance(begun, Lisa) and isinstance(learned, Lisa)
    assert torch.equal(begun.codebooks.chosen, learned.codebooks.chosen)  # type: ignore[arg-type]
    assert not torch.equal(begun.codebooks.words, learned.codebooks.words)
    for change, said in (
        ("model.width=8", "its items are 32 numbers wide, those of this model 8"),
        ("model.form=base", "form=frozen"),
    ):
        with pytest.raises(InputError, match=said):
            train(settings.override(change), world, tmp_path / "refused", begin=first)


@pytest.mark.parametrize("form", ["base", "soft", "mini", "plain"])
def test_gradient_reaches_every_parameter_and_codebooks_stay_in_use(form: str, small_world: Dataset) -> None:
    """The encoder of the codes too; and a training moves codes without letting them fall together."""
    model = lisa(small_world.catalog.n_items, **{"layers": 1, "width": 16, "codewords": 16, **FORMS[form]})
    goal = objective(AllConfig(), small_world, model.length)
    train = TrainConfig(batch=16, learning_rate=2e-2)
    learner, before = Optimization(model.train(), goal, train, torch.device("cpu")), model.all_codes().chosen[1:]
    losses: list[float] = []
    for number in range(4):
        batches = list(goal.epoch_batches(number, 0, 16))
        losses.append(sum(learner.step(batch).total for batch in batches) / sum(int((b.targets > 0).sum()) for b in batches))
        if not number:
            assert not [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    after = model.all_codes().chosen[1:]
    assert losses[-1] < losses[0] - 0.1
    assert (before != after).any() and min(len(book.unique()) for book in after.T) > 0.3 * model.config.codewords


# --- streaming -------------------------------------------------------------------------------------------------------


@forms
@torch.no_grad()
def test_a_stream_equals_one_pass_over_everything(form: str) -> None:
    """A state of L·b·w numbers. There is no end: far beyond what a window holds."""
    more, model = 60, lisa(**{"length": 70, **FORMS[form]})
    history, later = padded([10, 4, 0], 10), torch.randint(1, N_ITEMS + 1, (3, more))
    stream = open_stream(model, room=14)
    assert isinstance(stream, LisaStream)
    found = [stream.refresh(history), *(stream.step(later[:, i]) for i in range(more))]
    expected = model(reading(torch.cat([history, later], 1))).states[:, 9:]
    torch.testing.assert_close(torch.stack(found, 1), expected, atol=1e-4, rtol=1e-4)
    assert stream.count_numbers() == 1 + 2 * 3 * model.config.codewords
    assert stream.events_left == math.inf


# --- codes ------------------------------------------------------------------------------------------------------------


def decode(chosen: Tensor, words: Tensor) -> Tensor:
    """Codes `[..., b]` and words `[b, w, d]` → the vectors `[..., d]`, number by number those of `encode`."""
    total = torch.zeros(*chosen.shape[:-1], words.shape[-1], dtype=words.dtype)
    for b, book in enumerate(words):
        total = total + book[chosen[..., b]]
    return total


@pytest.mark.parametrize(
    "settings", [{"codewords": 300}, {"form": "mini", "codewords": 5, "target_codewords": 17}, {"codewords": 1}], ids=str
)
@torch.no_grad()
def test_the_item_table_is_all_in_its_codes(settings: dict[str, object]) -> None:
    model = lisa(500, **settings)
    codes, words = model.target_codebooks(model._item_contents()[1:]).chosen, model.target_codebooks.words
    table = functional.pad(decode(codes, words) / math.sqrt(words.shape[-1]), (0, 0, 1, 0))
    assert torch.equal(table, model.scorer().table)
