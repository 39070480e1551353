"""All experts of a memory at once: how busy each is, whose histories retrieve it, what it reads, and whether that is chance.

Load: in how many people's retrieval an expert is. Traffic: the same, weighted by gate. A **margin** is how far a person's
score lies above or below what it takes to be among their k: for those who retrieve the expert, its score less that of the
best expert left out; for the others, its score less that of the weakest expert taken.
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch

from elastic_core.data.item_features import trait_table
from elastic_core.data.synthetic import NOISE
from elastic_core.errors import InputError
from elastic_core.memory.recovery import event_truth
from elastic_core.memory.routing import RoutedUsers, check_expert_count, load_status, random_load_limits
from elastic_core.memory.routing_metrics import mean_shares
from elastic_core.memory.user_experts import expert_grid
from elastic_core.models import Recommender, as_retrieving_model, as_tracing_model
from elastic_core.services.experts.ablation import EvaluationContext
from elastic_core.services.experts.evidence import Evidence, ExpertName, Label, name_experts
from elastic_core.services.person.attribution import can_attribute
from elastic_core.services.person.recommend import read_batches

SHUFFLES = 5


@dataclass(frozen=True, eq=False)
class Survey:
    """What a population's retrievals and readings say about every expert. U people, k each, √K sub-keys."""

    traffic: RoutedUsers
    halves: np.ndarray  # float32 [U, 2, √K] sub-key scores
    bars: np.ndarray  # float32 [U, 2] score of the k-th expert and of the one after it
    votes: np.ndarray | None  # float32 [U, K] every expert's score where events vote; None where it is the sum of its halves
    of_people: Evidence  # genres and decades in what is read of those who retrieve an expert, against everybody's
    of_reading: Evidence | None  # the same in what an expert reads, against its people's histories read evenly; if it says
    interest_counts: pd.DataFrame | None  # [K, interests] on a planted world: events an expert reads most, by their true interest

    @property
    def n_users(self) -> int:
        return len(self.traffic.experts)

    @property
    def genres(self) -> tuple[str, ...]:
        return self.of_people.genres

    @property
    def n_subkeys(self) -> int:
        return int(self.halves.shape[2])

    @property
    def size(self) -> int:
        return self.n_subkeys**2

    @property
    def band(self) -> tuple[int, int]:
        return random_load_limits(self.traffic)

    def place(self, expert: int) -> tuple[int, int]:
        """Return row and column. Raises InputError for a number that is no expert."""
        if not 0 <= expert < self.size:
            raise InputError(f"there is no expert {expert}: there are 0 to {self.size - 1}")
        return expert // self.n_subkeys, expert % self.n_subkeys

    def scores(self, expert: int) -> np.ndarray:
        """Return the score of every person, float32 [U]."""
        row, column = self.place(expert)
        return self.halves[:, 0, row] + self.halves[:, 1, column] if self.votes is None else self.votes[:, expert]

    def margins(self, expert: int) -> np.ndarray:
        """Return the margin of every person, float [U]; see the module's text. Positive where the expert is retrieved (ties
        aside)."""
        retrieved = (self.traffic.experts == expert).any(1)
        return self.scores(expert) - np.where(retrieved, self.bars[:, 1], self.bars[:, 0])

    def spread(self) -> np.ndarray:
        """Return standard deviation of every expert's score over people, [K]: var(a + b) = var a + var b + 2 cov(a, b)."""
        if self.votes is not None:
            return self.votes.std(0)
        centred = self.halves - self.halves.mean(0)
        own = (centred**2).mean(0)
        both = np.einsum("ui,uj->ij", centred[:, 0], centred[:, 1]) / len(centred)
        return np.sqrt(np.maximum(own[0][:, None] + own[1][None, :] + 2 * both, 0)).ravel()

    def status(self) -> np.ndarray:
        """Say hot, usual, cold or dead per expert (memory/routing.py)."""
        return load_status(self.traffic.load, self.band)

    def by_chance(self) -> tuple[int, float]:
        """Count how many experts get a label that is not weak, and how many do when people are shuffled among experts (mean)."""
        rng, experts = np.random.default_rng(0), self.traffic.experts
        shuffled = [replace(self.of_people, experts=experts[rng.permutation(len(experts))]) for _ in range(SHUFFLES)]
        return self.of_people.count_labelled(), float(np.mean([each.count_labelled() for each in shuffled]))


@torch.inference_mode()
def survey_experts(context: EvaluationContext) -> Survey:
    """Ask everybody, in one pass over everybody. Raises InputError for a model without an interest memory, or with too many
    experts."""
    model, dataset, traffic = context.model, context.dataset, context.traffic
    if not model.retrieves:
        raise InputError("this run has no interest memory, so it has no experts")
    check_expert_count(model)
    genres, holds = trait_table(dataset.catalog)
    k, size, truth = traffic.experts.shape[1], len(traffic.load), dataset.truth if model.traces else None
    halves, bars, shares, reads, votes = [], [], [], [], []
    interest_counts = np.zeros((size, len(truth.interests)), np.int64) if truth else None
    for users, batch in read_batches(model, dataset, np.arange(dataset.histories.n_users)):
        retrieved, most = as_retrieving_model(model).retrieve(batch), min(k + 1, size)
        halves.append(retrieved.halves.float().numpy())
        bars.append(retrieved.all_scores.topk(most).values[:, [k - 1, most - 1]].float().numpy())
        if retrieved.ballots is not None:
            votes.append(retrieved.all_scores.float().numpy())
        shares.append(mean_shares(batch.items.numpy(), holds))
        if model.traces:
            weights = as_tracing_model(model).slot_weights(batch, retrieved)
            read_shares = weights / weights.sum(2, keepdim=True).clamp_min(1e-9)
            reads.append((read_shares @ torch.from_numpy(holds)[batch.items]).numpy())
        if interest_counts is not None:
            interest = event_truth(dataset, users, dataset.split_ends("test")[users], batch.items.shape[1])
            readers, known = retrieved.experts.gather(1, weights.argmax(1))[batch.real].numpy(), interest != NOISE
            np.add.at(interest_counts, (readers[known], interest[known]), 1)  # each event to the expert that reads it most
    known_of = np.concatenate(shares)
    return Survey(
        traffic, np.concatenate(halves), np.concatenate(bars), np.concatenate(votes) if votes else None,
        Evidence(genres, traffic.experts, known_of, known_of.mean(0)),
        Evidence(genres, traffic.experts, np.concatenate(reads), known_of) if reads else None,
        pd.DataFrame(interest_counts, columns=truth.interests) if truth else None,
    )  # fmt: skip


def expert_table(survey: Survey) -> pd.DataFrame:
    """Tell all experts: where, how busy, what for. Columns of things that the run or its data do not have are missing."""
    traffic = survey.traffic
    frame = expert_grid(survey.n_subkeys).assign(
        load=traffic.load,
        status=survey.status(),
        traffic=traffic.traffic / max(traffic.traffic.sum(), 1e-12),
        spread=survey.spread(),
    )
    for name, evidence in (("people", survey.of_people), ("reads", survey.of_reading)):
        if evidence is not None and survey.genres:
            frame = frame.join(evidence.top_genres.add_prefix(f"{name}_"))
    return frame if survey.interest_counts is None else frame.join(match_interests(survey.interest_counts))


def match_interests(counts: pd.DataFrame) -> pd.DataFrame:
    """Return per expert on a planted world: the true interest of most events it reads most, its share (purity), what labels drawn
    at random from all events would give, and the number of events."""
    events, base = counts.sum(axis=1), counts.sum() / max(counts.sum().sum(), 1)
    rng = np.random.default_rng(0)
    chance = [rng.multinomial(n, base, 200).max(1).mean() / n if n else np.nan for n in events]
    return pd.DataFrame({
        "interest": counts.idxmax(axis=1).where(events > 0, ""),
        "purity": counts.max(axis=1) / events.where(events > 0),
        "purity_chance": chance,
        "events": events,
    })  # fmt: skip


def expert_names(survey: Survey, model: Recommender) -> dict[int, ExpertName]:
    """Return the one name of every expert that has one, by the evidence that says best what people on whom it was not chosen
    choose next (checkpoints/LOG.md): by what its slot holds where each expert suggests by itself, by what its people choose where
    a model mixes its experts. None for data without genres."""
    if not survey.genres:
        return {}
    by_slot = can_attribute(model) and survey.of_reading is not None  # type: ignore[arg-type]
    return name_experts(survey.of_reading if by_slot else survey.of_people)  # type: ignore[arg-type]


def label_expert(survey: Survey, expert: int) -> Label | None:
    """Return the heuristic name of an expert with its evidence: the genres over-represented among its people. None without
    genres."""
    return survey.of_people.label(expert) if survey.genres else None


def hot_experts(traffic: RoutedUsers, user: int) -> pd.DataFrame:
    """Return the experts a person retrieves, best first, and how busy each is.

    `share` of people who retrieve it, `load_rank` (1 = busiest), `times` this person's gate over the mean gate of everybody
    (0 for those who do not retrieve it). `kind`: how busy against the random router (`status` within `band`).
    """
    experts, gates = traffic.experts[user], traffic.gates[user].astype(float)
    n_users, load = len(traffic.experts), traffic.load[experts]
    return pd.DataFrame({
        "expert": experts, "rank": np.arange(1, len(experts) + 1), "gate": gates, "load": load, "share": load / n_users,
        "load_rank": [int((traffic.load > own).sum()) + 1 for own in load],
        "times": gates * n_users / traffic.traffic[experts], "kind": load_status(load, random_load_limits(traffic)),
    })  # fmt: skip
