"""What is implemented and what the paper left open, as data: equations with the modules that hold them and the tests that guard
them, the nine open questions, the paper's own numbers (Table 3), the words and the limits. Measured effects: effects.py.
"""

from typing import NamedTuple

import pandas as pd

from elastic_core.data.source_catalog import SOURCES

# What it says, a file of this project with what to look for in it, and the test that guards it.
EQUATIONS = (
    (
        "Eq. 1", "softmax self-attention, the quadratic peer", "elastic_core/core/layers.py: Attention",
        "tests/test_contracts.py::test_fused_and_eager_attention_give_the_same_numbers",
    ),
    (
        "Eq. 2-3, two-way", "interests aggregate the history and dispatch it back",
        "elastic_core/core/dispatch.py: TwoWayDispatcher",
        "tests/test_layers.py::test_the_folded_two_way_dispatcher_is_textbook_attention",
    ),
    (
        "Eq. 2-3, causal (ours)", "the same for every prefix at once, so many targets are learned from one pass",
        "elastic_core/core/dispatch.py: CausalDispatcher",
        "tests/test_layers.py::test_the_causal_dispatcher_is_a_recomputation_for_every_prefix",
    ),
    (
        "Eq. 2, running sums (ours)", "the aggregation of every prefix, in chunks",
        "elastic_core/core/dispatch.py: read_prefixes", "tests/test_layers.py::test_prefix_slots_equal_the_direct_sum",
    ),
    (
        "Eq. 4", "a history becomes one query", "elastic_core/core/elastic.py: QueryNetwork",
        "tests/test_product_keys.py::test_padding_is_invisible_and_people_do_not_meet",
    ),
    (
        "Eq. 5", "the k best of K experts, by every key", "elastic_core/services/keys/checks.py: check_search",
        "tests/test_retrieval_lesson.py::test_both_searches_agree_and_nothing_is_lost_in_adding",
    ),
    (
        "Eq. 6", "a key is two sub-keys side by side", "elastic_core/core/elastic.py: ProductKeys",
        "tests/test_product_keys.py::test_a_key_is_two_sub_keys_side_by_side",
    ),
    (
        "Eq. 7", "the best k of K from 2√K comparisons, exactly", "elastic_core/core/elastic.py: top_pairs",
        "tests/test_product_keys.py::test_product_keys_equal_brute_force",
    ),
    (
        "Algorithm 1", "gather the experts, weighted by their scores", "elastic_core/core/elastic.py: InterestMemory",
        "tests/test_product_keys.py::test_experts_are_gated_by_their_scores",
    ),
    (
        "Votes (ours)", "every event votes for its m best experts, by Eq. 7; the k most above average are retrieved",
        "elastic_core/slots/voting.py: VotingMemory",
        "tests/test_product_keys.py::test_votes_are_counted_as_somebody_would_count_them",
    ),
    (
        "Interest slots (ours)", "M_t = (1 − w_t) M_{t−1} + w_t h_t: what last happened in an interest",
        "elastic_core/slots/gated_slots.py: hold", "tests/test_layers.py::test_gated_slots_equal_their_recurrence",
    ),
    (
        "Eq. 8", "score of an item: last state times item table", "elastic_core/core/elastic.py: Elastic",
        "tests/test_contracts.py::test_shapes_and_finite_scores",
    ),
    (
        "Eq. 9-10", "softmax cross-entropy over all items", "elastic_core/core/objective.py: full_softmax",
        "tests/test_contracts.py::test_gradient_reaches_every_parameter",
    ),
    (
        "Training", "no model sees its answer", "elastic_core/core/objective.py: Window",
        "tests/test_contracts.py::test_no_peeking",
    ),
    (
        "Protocol", "four sets of rivals for the target", "elastic_core/core/evaluate.py: Candidates",
        "tests/test_evaluate.py::test_candidate_sets_match_their_definitions",
    ),
    (
        "Metrics", "NDCG, HR, MRR; ties at their expected rank", "elastic_core/core/evaluate.py: expected",
        "tests/test_metrics.py::test_expected_metrics_are_the_mean_over_all_orders_of_ties",
    ),
    (
        "Claims", "A against B, over people and training seeds", "elastic_core/evaluation/compare.py: compare_many",
        "tests/test_compare.py::test_the_interval_covers_the_truth_as_often_as_it_says",
    ),
    (
        "Data rule", "k-core, stable order, leave-one-out", "elastic_core/data/folding.py: core",
        "tests/data/test_histories.py::test_core_is_the_slow_core",
    ),
    (
        "Figure 4", "load of the experts beside random experts", "elastic_core/memory/routing.py: Routing",
        "tests/test_routing.py::test_a_random_router_lies_in_its_own_chance_band_and_a_collapsed_one_does_not",
    ),
    (
        "GRU4Rec", "h = (1 − z) ⊙ h + z ⊙ c, gate by gate", "elastic_core/peers/gru4rec.py: GRU4Rec",
        "tests/test_twins_recurrent.py::test_every_state_is_the_one_written_out",
    ),
    (
        "FPMC", "the last event’s factors, and those of a history in place of a person’s", "elastic_core/peers/fpmc.py: FPMC",
        "tests/test_twins_recurrent.py::test_every_state_is_the_one_written_out",
    ),
    (
        "LRURec", "h_t = Λ h_{t−1} + B x_t, all at once by recursive doubling", "elastic_core/peers/lrurec.py: scan",
        "tests/test_twins_recurrent.py::test_a_scan_equals_its_recurrence_and_so_do_its_gradients",
    ),
    (
        "LinRec", "φ(Q) (φ(K)ᵀ V) / √d, and its causal running sum in chunks", "elastic_core/peers/linrec.py: LinearAttention",
        "tests/test_twins_attention.py::test_the_two_forms_read_the_same_at_the_end_and_it_is_the_published_formula",
    ),
    (
        "HSTU", "SiLU(q·k + b) / n without softmax, gated by U", "elastic_core/peers/hstu.py: TransductionUnit",
        "tests/test_twins_attention.py::test_a_model_is_its_twin",
    ),
    (
        "LISA, codes", "an item is a sum of codewords, chosen one after the other",
        "elastic_core/peers/parts/codebooks.py: encode",
        "tests/test_lisa.py::test_the_step_back_through_codes_is_that_of_the_softmax",
    ),
    (
        "LISA, attention", "counts of codewords times a table of word pairs", "elastic_core/peers/lisa.py: attend",
        "tests/test_lisa.py::test_every_form_is_its_equations_in_loops",
    ),
    (
        "LISA, compression", "codes and words in place of an item table", "elastic_core/peers/lisa.py: item_codes",
        "tests/test_lisa.py::test_the_item_table_is_all_in_its_codes",
    ),
    (
        "SMA", "attention times the intensity of an event’s kind", "elastic_core/peers/sma.py: ModulatedAttention",
        "tests/test_sma.py::test_it_is_what_it_is_event_by_event",
    ),
    (
        "SMA, CTReg", "−(Σ log λ at events − ∫ λ)", "elastic_core/peers/parts/intensity.py: Intensity",
        "tests/test_sma.py::test_ctreg_finds_the_rates_of_a_poisson_process",
    ),
    (
        "DIN", "Σ_j a(e_j, e_c) e_j: every candidate attends to the history", "elastic_core/peers/din.py: ActivationUnit",
        "tests/test_hosts.py::test_din_is_its_twin_pair_by_pair",
    ),
    (
        "SHAN", "attention to all events, then to that and the last few", "elastic_core/peers/shan.py: SHAN",
        "tests/test_hosts.py::test_shan_is_its_twin_event_by_event",
    ),
    (
        "Linformer, Eq. 7", "softmax(Q (E K)ᵀ / √d) (F V)", "elastic_core/peers/linformer.py: LowRankAttention",
        "tests/test_twins_sparse.py::test_a_model_is_its_twin",
    ),
    (
        "Reformer, Eq. 2-6", "attention within the buckets of random hashes",
        "elastic_core/peers/parts/bucket_attention.py: attend",
        "tests/test_twins_sparse.py::test_sorted_chunks_are_one_masked_softmax",
    ),
    (
        "Sinkhorn", "blocks brought near by a soft permutation", "elastic_core/peers/sinkhorn.py: SinkhornAttention",
        "tests/test_twins_sparse.py::test_balancing_makes_a_permutation_soft_and_without_end_a_causal_one_is_the_shift",
    ),
    (
        "Routing", "attention within the clusters of a running K-means", "elastic_core/peers/routing.py: Routing",
        "tests/test_twins_sparse.py::test_centroids_move_to_the_means_and_a_deserted_one_moves_to_who_fits_worst",
    ),
    (
        "Clustered", "queries that are alike attend as their mean", "elastic_core/peers/clustered.py: ClusteredAttention",
        "tests/test_twins_sparse.py::test_in_the_limit_it_is_sasrecs_attention",
    ),
)  # fmt: skip


class Question(NamedTuple):
    key: str
    title: str
    paper: str  # what stands there, and what would follow
    here: str


OPEN = (
    Question(
        "a", "The scores are dropped after the search",
        "Algorithm 1 does not use the scores any more. So the keys and the query network get no gradient, and they never learn.",
        "Each expert is multiplied by its score (`gate`: `softmax`). `none` is the paper’s text.",
    ),
    Question(
        "b", "Equation 7 prints q₁ for both halves",
        "Rows and columns would be found with the same numbers, and the second half of the query would never be read.",
        "The second half is q₂.",
    ),
    Question(
        "c", "Equation 10 is not a cross-entropy",
        "L = y log ŷ + (1 − y)(1 − log ŷ) becomes smaller as the model becomes more sure that the right item is wrong.",
        "Softmax cross-entropy over all items, as Equation 9 suggests.",
    ),
    Question(
        "d", "Every position is read, also the answer",
        "If the model learned at every position, it would see its own answer (Equations 2 and 4).",
        "Two forms cannot see it: `last` learns one event of each history, `window` reads only what came before.",
    ),
    Question(
        "e", "Which items is the answer compared with?",
        "“The entire candidate items”, and SASRec has an NDCG@10 of 0.419 on ML-1M. Nobody who ranks all items has published "
        "more than 0.20 there. With 100 drawn items, 0.419 is likely (we are about 90% sure).",
        "There are four ways to compare, and each number says which.",
    ),
    Question(
        "f", "Faster than which SASRec?",
        "It says 2.68 times faster, and about 90% less memory with 1,024 events. Modern (fused) attention never writes down "
        "N × N scores. So much of the difference lies in how SASRec was written.",
        "Both SASRecs are measured, eager and fused, with the same tricks.",
    ),
    Question(
        "g", "Two averages for the same comparison", "The text about Table 3 says two things. Only one of them can be right.",
        "We use the table, not the text.",
    ),
    Question(
        "h", "Some settings are missing",
        "K, k, learning rate and batch are given. Width, layers, heads, stride and dropout are not. So the method can be "
        "repeated, but not its numbers.",
        "All settings stand in the recipe, and in the config.json of each run.",
    ),
    Question(
        "i", "“Relatively balanced”, with “hot experts”",
        "Figure 4 has nothing to compare with. Random experts are not used equally either.",
        "Behind the bars you see what random experts would give.",
    ),
)  # fmt: skip

PAPER_METRICS = ("NDCG@10", "HR@10", "MRR@10", "NDCG@20", "HR@20", "MRR@20")
# Table 3 of the paper, as printed; `pkm-act` is the full model of the paper's first version (its Table 3). Ours is causal: all
# its memories are asked with the same events, not with each layer's input; only the two-way form asks as PKM-ACT prints it.
PAPER = {
    "elastic": (0.4256, 0.6619, 0.3517, 0.4546, 0.7767, 0.3597),
    "query-mean": (0.4097, 0.6558, 0.3328, 0.4381, 0.7677, 0.3406),
    "memory-none": (0.4132, 0.6515, 0.3387, 0.4433, 0.7699, 0.3470),
    "dispatch-none": (0.4099, 0.6366, 0.3390, 0.4370, 0.7443, 0.3464),
    "pkm-act": (0.4249, 0.6613, 0.3517, 0.4540, 0.7757, 0.3597),
}
PAPER_SAYS_DROP = {"memory-none": (3.36, 2.51), "dispatch-none": (3.80,)}  # per cent, in the running text
VARIANTS = {
    "elastic": "ELASTIC",
    "query-mean": "without the query network: the plain mean is the query",
    "memory-none": "without the memory: everybody has the same k interests",
    "dispatch-none": "without the dispatcher: attention, with experts as extra keys",
    "pkm-act": "PKM-ACT: a memory before every layer, all asked with the same events",
    "gate-none": "without the gate: Algorithm 1 as printed",
    "norm-layer": "layer norm on the query, no balance term",
    "no-local": "without the local convolution (ours)",
    "two-way": "the paper's own encoder: two-way, without the convolution",
    "repeats": "with a learned number for what was met before (ours)",
    "votes": "every event votes for its best experts (ours)",
}

GLOSSARY = (
    ("history", "the events of one person in order of time"),
    ("event", "one person met one item, once"),
    ("interest expert", "a vector of learned numbers in the memory; it can stand for a kind of taste"),
    ("memory", "all K experts, in a grid of √K rows and √K columns"),
    ("sub-key", "half a key: each row has one, and each column; an expert’s key is both together"),
    ("query", "what is compared with the keys: one for a whole history, as in the paper, or one for each event, which votes"),
    ("retrieve", "find the k experts whose keys fit the query best"),
    ("interest slot (ours)", "what one expert holds of a history; newer events push out older ones"),
    ("gate", "how much an expert counts, by its score; through it the keys learn"),
    ("aggregate", "each expert collects what it looks at in the history (Equation 2)"),
    ("dispatch", "each event reads back what the experts collected (Equation 3)"),
    ("load", "how many people use an expert; traffic also counts how strongly"),
    ("dead expert", "one that nobody uses"),
    ("layer", "all events pass once through attention and a small network; layers follow each other"),
    ("causal", "no event reads a later one; two-way: all read all"),
    ("k-core", "items and people with fewer than k events are dropped, again and again, until none is left"),
    ("leave-one-out", "the last event is the test, the one before chooses when to stop, earlier ones train"),
    ("training seed", "what random draws begin with; another seed gives another result"),
    ("baseline", "a method that only counts: the most popular items, or what followed what"),
    ("planted world", "made-up people with known interests, so that experts can be compared with the truth"),
)
METRICS = (
    ("NDCG@10", "1 if the right item is first, 1/log₂(1 + place) down to place ten, then 0"),
    ("HR@10", "the part of people whose right item is among the first ten"),
    ("MRR@10", "1/place down to place ten, then 0"),
    ("full", "against all items that are new to the person; our main way"),
    ("full-seen", "against all items, also those that the person knows"),
    ("pop100", "against 100 items drawn by popularity, as RecBole does; much easier"),
    ("uniform100", "against 100 new items, all equally likely to be drawn; easier still"),
    ("± 95%", "1.96 standard errors over people; it says nothing about other seeds"),
    ("ties", "items with equal scores share their places: a constant score is as good as luck"),
)
WORDS = dict((*GLOSSARY, *METRICS))
AGAINST = "`full`: all new items; `full-seen`: all; `pop100`, `uniform100`: 100 drawn by popularity or evenly"
LIMITS = (
    "What has no run here is not measured. Of the paper’s Table 2, XLong is missing.",
    "Each person is judged by one last event. With a thousand people, a standard error is as large as many published gains.",
    "Four parts are ours. They are the causal form, the whitening of the query, the balance term and the local convolution.",
    "Causal PKM-ACT asks all memories with the same events. Only the two-way form asks with the input of each layer, as printed.",
    "In the causal form, late events use experts that were found a little earlier.",
    "A low rating counts as having met the film.",
    "Speed is measured on shared processor cores. So compare only within one measurement.",
    "People who use an expert show what it may stand for. They never prove what it computes.",
)
ACCESSIBILITY = (
    "Every chart has a text for screen readers and a table. Every click has a box or a button, too. The keyboard walks through "
    "tables, not charts.",
    "Nothing is said by colour alone, and colour-blind people can tell our colours apart.",
    "Light or dark follows your system. Nothing moves before you ask.",
    "The app sends nothing anywhere. Missing data come only from their official address.",
)
PAPERS = (
    ("ELASTIC", "Efficient linear attention for sequential interest compression; PKM-ACT is its first version"),
    ("Product keys", "Lample et al., Large Memory Layers with Product Keys, NeurIPS 2019"),
    ("SASRec", "Kang and McAuley, ICDM 2018"),
    ("FPMC", "Rendle, Freudenthaler and Schmidt-Thieme, WWW 2010"),
    ("GRU4Rec", "Hidasi et al., ICLR 2016"),
    ("BERT4Rec", "Sun et al., CIKM 2019"),
    ("LISA", "Wu et al., WWW 2021"),
    ("SMA, self-modulating attention", "Chen et al., ICML 2021"),
    ("LinRec", "Liu et al., SIGIR 2023"),
    ("LRURec", "Yue et al., WSDM 2024"),
    ("HSTU, Actions Speak Louder than Words", "Zhai et al., ICML 2024"),
    ("DIN", "Zhou et al., KDD 2018"),
    ("SHAN", "Ying et al., IJCAI 2018"),
    ("Linformer", "Wang et al., 2020"),
    ("Reformer", "Kitaev, Kaiser and Levskaya, ICLR 2020"),
    ("Sparse Sinkhorn Attention", "Tay et al., ICML 2020"),
    ("Routing Transformer", "Roy et al., TACL 2021"),
    ("Fast Transformers with Clustered Attention", "Vyas, Katharopoulos and Fleuret, NeurIPS 2020"),
    ("RecBole", "Zhao et al., CIKM 2021"),
    ("Adjusted mutual information", "Vinh, Epps and Bailey, JMLR 11, 2010"),
)


def equations() -> pd.DataFrame:
    return pd.DataFrame(EQUATIONS, columns=["equation", "what it says", "module", "guarded by"])


def terms() -> pd.DataFrame:
    """Data sources with their official address and terms."""
    rows = [(s.label, s.url, s.licence) for s in SOURCES.values()]
    return pd.DataFrame(rows, columns=["data", "official address", "terms and citation"])
