"""What is implemented and what the paper left open, as data: equations with the modules that hold them and the tests that guard
them, the nine open questions, the paper's own numbers (Table 3), the words and the limits. Measured effects: effects.py.
"""

from typing import NamedTuple

import pandas as pd

from elastic_core.data.origins import SOURCES


class Equation(NamedTuple):
    equation: str
    says: str
    module: str  # a file of this project
    name: str  # what to look for in it
    test: str  # file::test


EQUATIONS = (
    Equation(
        "Eq. 1", "softmax self-attention, the quadratic peer", "elastic_core/layers/attention.py", "Attention",
        "tests/test_contracts.py::test_fused_and_eager_attention_give_the_same_numbers",
    ),
    Equation(
        "Eq. 2-3, two-way", "interests aggregate the history and dispatch it back", "elastic_core/layers/dispatcher.py",
        "TwoWayDispatcher", "tests/test_layers.py::test_the_folded_two_way_dispatcher_is_textbook_attention",
    ),
    Equation(
        "Eq. 2-3, causal (ours)", "the same for every prefix at once, so many targets are learned from one pass",
        "elastic_core/layers/dispatcher.py", "CausalDispatcher",
        "tests/test_layers.py::test_the_causal_dispatcher_is_a_recomputation_for_every_prefix",
    ),
    Equation(
        "Eq. 2, running sums (ours)", "the aggregation of every prefix, in chunks", "elastic_core/layers/prefix_slots.py",
        "read_prefixes", "tests/test_layers.py::test_prefix_slots_equal_the_direct_sum",
    ),
    Equation(
        "Eq. 4", "a history becomes one query", "elastic_core/layers/query_network.py", "QueryNetwork",
        "tests/test_product_keys.py::test_padding_is_invisible_and_people_do_not_meet",
    ),
    Equation(
        "Eq. 5", "the k best of K experts, by every key", "elastic_core/services/keys/checks.py", "check",
        "tests/test_retrieval_lesson.py::test_both_searches_agree_and_nothing_is_lost_in_adding",
    ),
    Equation(
        "Eq. 6", "a key is two sub-keys side by side", "elastic_core/layers/product_keys.py", "ProductKeys",
        "tests/test_product_keys.py::test_a_key_is_two_sub_keys_side_by_side",
    ),
    Equation(
        "Eq. 7", "the best k of K from 2√K comparisons, exactly", "elastic_core/layers/product_keys.py", "top_pairs",
        "tests/test_product_keys.py::test_product_keys_equal_brute_force",
    ),
    Equation(
        "Algorithm 1", "gather the experts, weighted by their scores", "elastic_core/layers/interest_memory.py", "InterestMemory",
        "tests/test_product_keys.py::test_experts_are_gated_by_their_scores",
    ),
    Equation(
        "Eq. 8", "score of an item: last state times item table", "elastic_core/models/elastic.py", "Elastic",
        "tests/test_contracts.py::test_shapes_and_finite_scores",
    ),
    Equation(
        "Eq. 9-10", "softmax cross-entropy over all items", "elastic_core/objectives/softmax.py", "full_softmax",
        "tests/test_contracts.py::test_gradient_reaches_every_parameter",
    ),
    Equation(
        "Training", "no model sees its answer", "elastic_core/objectives/window.py", "Window",
        "tests/test_contracts.py::test_no_peeking",
    ),
    Equation(
        "Protocol", "four sets of rivals for the target", "elastic_core/evaluation/candidates.py", "Candidates",
        "tests/test_evaluate.py::test_candidate_sets_match_their_definitions",
    ),
    Equation(
        "Metrics", "NDCG, HR, MRR; ties at their expected rank", "elastic_core/evaluation/metrics.py", "expected",
        "tests/test_metrics.py::test_expected_metrics_are_the_mean_over_all_orders_of_ties",
    ),
    Equation(
        "Claims", "A against B, over people and training seeds", "elastic_core/evaluation/compare.py", "compare_many",
        "tests/test_compare.py::test_the_interval_covers_the_truth_with_seeds_and_one_of_people_alone_does_not",
    ),
    Equation(
        "Data rule", "k-core, stable order, leave-one-out", "elastic_core/data/histories.py", "core",
        "tests/data/test_histories.py::test_core_is_the_slow_core",
    ),
    Equation(
        "Figure 4", "load of the experts beside a random router", "elastic_core/memory/routing.py", "Routing",
        "tests/test_routing.py::test_a_random_router_lies_in_its_own_chance_band_and_a_collapsed_one_does_not",
    ),
    Equation(
        "GRU4Rec", "h = (1 − z) ⊙ h + z ⊙ c, gate by gate", "elastic_core/models/gru4rec.py", "GRU4Rec",
        "tests/test_twins_recurrent.py::test_every_state_is_the_one_written_out",
    ),
    Equation(
        "FPMC", "the last event’s factors, and those of a history in place of a person’s", "elastic_core/models/fpmc.py", "FPMC",
        "tests/test_twins_recurrent.py::test_every_state_is_the_one_written_out",
    ),
    Equation(
        "LRURec", "h_t = Λ h_{t−1} + B x_t, all at once by recursive doubling", "elastic_core/layers/linear_recurrence.py",
        "scan", "tests/test_twins_recurrent.py::test_a_scan_equals_its_recurrence_and_so_do_its_gradients",
    ),
    Equation(
        "LinRec", "φ(Q) (φ(K)ᵀ V) / √d, and its causal running sum in chunks", "elastic_core/layers/linear_attention.py",
        "LinearAttention",
        "tests/test_twins_attention.py::test_the_two_forms_read_the_same_at_the_end_and_it_is_the_published_formula",
    ),
    Equation(
        "HSTU", "SiLU(q·k + b) / n without softmax, gated by U", "elastic_core/models/hstu.py", "TransductionUnit",
        "tests/test_twins_attention.py::test_a_model_is_its_twin",
    ),
    Equation(
        "LISA, codes", "an item is a sum of codewords, chosen one after the other", "elastic_core/layers/codebooks.py", "encode",
        "tests/test_lisa.py::test_the_step_back_through_codes_is_that_of_the_softmax",
    ),
    Equation(
        "LISA, attention", "counts of codewords times a table of word pairs", "elastic_core/layers/histogram_attention.py",
        "attend", "tests/test_lisa.py::test_every_form_is_its_equations_in_loops",
    ),
    Equation(
        "LISA, compression", "codes and words in place of an item table", "elastic_core/memory/compression.py", "compress",
        "tests/test_lisa.py::test_what_comes_back_from_codes_is_the_same_table",
    ),
    Equation(
        "SMA", "attention times the intensity of an event’s kind", "elastic_core/layers/intensity.py", "ModulatedAttention",
        "tests/test_sma.py::test_it_is_what_it_is_event_by_event",
    ),
    Equation(
        "SMA, CTReg", "−(Σ log λ at events − ∫ λ)", "elastic_core/layers/intensity.py", "Intensity",
        "tests/test_sma.py::test_ctreg_finds_the_rates_of_a_poisson_process",
    ),
    Equation(
        "DIN", "Σ_j a(e_j, e_c) e_j: every candidate attends to the history", "elastic_core/layers/activation_unit.py",
        "ActivationUnit", "tests/test_hosts.py::test_din_is_its_twin_pair_by_pair",
    ),
    Equation(
        "SHAN", "attention to all events, then to that and the last few", "elastic_core/models/shan.py", "SHAN",
        "tests/test_hosts.py::test_shan_is_its_twin_event_by_event",
    ),
    Equation(
        "Linformer, Eq. 7", "softmax(Q (E K)ᵀ / √d) (F V)", "elastic_core/models/linformer.py", "LowRankAttention",
        "tests/test_twins_sparse.py::test_a_model_is_its_twin",
    ),
    Equation(
        "Reformer, Eq. 2-6", "attention within the buckets of random hashes", "elastic_core/layers/bucket_attention.py", "attend",
        "tests/test_twins_sparse.py::test_sorted_chunks_are_one_masked_softmax",
    ),
    Equation(
        "Sinkhorn", "blocks brought near by a soft permutation", "elastic_core/layers/sinkhorn_attention.py", "SinkhornAttention",
        "tests/test_twins_sparse.py::test_balancing_makes_a_permutation_soft_and_without_end_a_causal_one_is_the_shift",
    ),
    Equation(
        "Routing", "attention within the clusters of a running K-means", "elastic_core/models/routing.py", "Routing",
        "tests/test_twins_sparse.py::test_centroids_move_to_the_means_and_a_deserted_one_moves_to_who_fits_worst",
    ),
    Equation(
        "Clustered", "queries that are alike attend as their mean", "elastic_core/layers/clustered_attention.py",
        "ClusteredAttention", "tests/test_twins_sparse.py::test_in_the_limit_it_is_sasrecs_attention",
    ),
)  # fmt: skip


class Question(NamedTuple):
    key: str
    title: str
    paper: str
    consequence: str
    here: str


OPEN = (
    Question(
        "a", "The scores are dropped after the search",
        "Algorithm 1 returns the experts at the found places and forgets their scores.",
        "Sub-keys and query network get no gradient at all: the router stays as it was drawn.",
        "Experts are weighted by their scores (`gate`: softmax, sigmoid; `none` is the paper’s text).",
    ),
    Question(
        "b", "Eq. 7 prints q₁ for both halves", "Both searches compare q₁, the first half of the query.",
        "The second half would never be read, and rows and columns of the memory would follow the same numbers.",
        "q₂ for the second half.",
    ),
    Question(
        "c", "Eq. 10 is not a cross-entropy", "L = y log ŷ + (1 − y)(1 − log ŷ), to be minimised.",
        "For the right item (y = 1) it is log ŷ: it falls as the model becomes surer that the right item is wrong.",
        "Softmax cross-entropy over all items, as Eq. 9 suggests.",
    ),
    Question(
        "d", "Aggregation and query read all positions", "Every position of the history takes part in Eq. 2 and Eq. 4.",
        "A loss at every position would see its own answer.",
        "Two objectives that cannot peek: `last` (one target a sample) and `window` (a causal form of Eq. 2-3).",
    ),
    Question(
        "e", "Which items is the answer ranked against?",
        "“Against the entire candidate items”; SASRec at NDCG@10 0.419 on ML-1M.",
        "No published full ranking is above 0.20 there. The figures fit 100 sampled rivals (about 90% sure).",
        "Four protocols, and every number carries its own.",
    ),
    Question(
        "f", "Faster than which SASRec?", "×2.68 faster, about 90% less memory than SASRec at 1,024 events.",
        "Fused attention never writes the N × N scores down: much of the gap is the peer’s implementation.",
        "Both SASRecs, eager and fused, with the same tricks; never only the slower.",
    ),
    Question(
        "g", "Two averages for the same ablation", "The text on Table 3 says removing the memory costs 3.36%, then 2.51%.",
        "The text cannot both be right.", "The table is quoted, not the text; its average is computed here.",
    ),
    Question(
        "h", "No widths, depths, dropout, initialisation",
        "K, k, learning rate and batch are given; d, L, H, stride, dropout are not.",
        "The paper’s numbers cannot be repeated, only its method.", "Ours are in the recipe and in each run’s config.json.",
    ),
    Question(
        "i", "“Relatively balanced”, with “hot experts”", "Figure 4 shows the load of the experts without a baseline.",
        "A random router has busier and quieter experts, too.", "The band of a uniform random router is drawn behind the load.",
    ),
)  # fmt: skip

PAPER_PROTOCOL = "MovieLens-1M, the paper’s own protocol"
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
    "query-mean": "without the query network: the plain mean asks",
    "memory-none": "without the memory: k interests everybody shares",
    "dispatch-none": "without the dispatcher: self-attention, experts as extra keys",
    "pkm-act": "PKM-ACT: a memory before every layer, all asked with the same events",
    "gate-none": "without the gate: Algorithm 1 as printed",
    "norm-layer": "layer norm on the query, no balance term",
    "no-local": "without the local convolution (ours)",
    "repeats": "with a learned number for what was met before (ours)",
}

GLOSSARY = (
    ("history", "a person’s events in the order of their times; padding on the left where it is short"),
    ("event", "one person met one item, once"),
    ("baseline", "a system that only counts: most popular items, or what followed what"),
    ("training seed", "the number that random draws begin with; another one, another result"),
    ("layer", "one pass of all events through attention and a small network; several stand on top of each other"),
    ("interest expert", "a learned vector of the memory that can stand for a kind of taste"),
    ("memory", "all K experts, in a grid of √K rows and √K columns"),
    ("sub-key", "half a key: every row has one and every column has one; an expert’s key is its row’s and its column’s"),
    ("query", "what a history becomes before it is compared with the keys"),
    ("retrieve", "find the k experts whose keys fit the query best"),
    ("gate", "the weight that an expert’s score gives it; through it gradient reaches keys and query"),
    ("aggregate", "each retrieved expert collects what it attends to in the history (Eq. 2)"),
    ("dispatch", "each event reads the collected interests back (Eq. 3)"),
    ("load", "how many people retrieve an expert; traffic is the same, weighted by gate"),
    ("dead expert", "one that nobody retrieves"),
    ("k-core", "items, then people, with fewer than k events are dropped until nothing changes"),
    ("leave-one-out", "the last event tests, the one before chooses the epoch, all earlier ones train"),
    ("causal", "no position reads a later one, so many targets are learned from one pass; two-way: all read all"),
    ("planted world", "data drawn by a known rule, so that experts can be scored against the truth"),
)
METRICS = (
    ("NDCG@10", "1 if the right item is first, then 1/log₂(1 + place), 0 below place ten; mean over people"),
    ("HR@10", "share of people whose right item is among the first ten"),
    ("MRR@10", "mean of 1/place, 0 below place ten"),
    ("full", "ranked against all items that the person has not met; the primary protocol"),
    ("full-seen", "ranked against all items, those already met included"),
    ("pop100", "against 100 draws by popularity, as RecBole does; far easier, kind to models that ignore popularity"),
    ("uniform100", "against 100 items drawn evenly from those not met; easier still"),
    ("± 95%", "1.96 standard errors over people; it says nothing about other training seeds"),
    ("ties", "count at their expected rank, so a constant score gets chance level"),
)
WORDS = dict((*GLOSSARY, *METRICS))
AGAINST = "`full`: all unmet items; `full-seen`: all; `pop100`, `uniform100`: 100 drawn by popularity or evenly"
LIMITS = (
    "What the tables here call not measured has no run yet. All systems of the paper’s Table 2 are here; its data XLong is not.",
    "Each person is judged by one last event. With a thousand people one standard error is as large as many published gains.",
    "The causal form, the whitening of the query, the balance term and the local convolution are ours, not the paper’s.",
    "PKM-ACT in the causal form: all its memories are asked with the same events, not with each layer’s input; only the two-way "
    "form asks with the layer’s input, as PKM-ACT prints it.",
    "In the causal form a retrieval serves a whole window of targets, so late targets use experts that are up to a window old.",
    "Ratings are read as events: a low rating counts as having met the film.",
    "Speed was measured on shared processor cores. Compare systems within one measurement, not seconds across machines.",
    "What an expert stands for is evidence from people who retrieve it, never proof of what it computes.",
)
ACCESSIBILITY = (
    "Every chart has a text for screen readers and the same numbers as a table; every click has a box or button beside it.",
    "Colours are from a palette that colour-blind people can tell apart, and nothing is said by colour alone.",
    "Light and dark follow your system. Nothing moves unless you ask for it.",
    "Charts themselves cannot be walked through by keyboard; their tables can.",
    "The app sends nothing anywhere. Data are fetched only when they are missing, and only from their official address.",
)
PAPERS = (
    ("ELASTIC", "Efficient linear attention for sequential interest compression; PKM-ACT is its first version."),
    ("Product keys", "G. Lample et al., Large Memory Layers with Product Keys, NeurIPS 2019."),
    ("SASRec", "W.-C. Kang and J. McAuley, Self-Attentive Sequential Recommendation, ICDM 2018."),
    ("FPMC", "S. Rendle, C. Freudenthaler and L. Schmidt-Thieme, Factorizing Personalized Markov Chains, WWW 2010."),
    ("GRU4Rec", "B. Hidasi et al., Session-based Recommendations with Recurrent Neural Networks, ICLR 2016."),
    ("BERT4Rec", "F. Sun et al., BERT4Rec, CIKM 2019."),
    ("LISA", "Y. Wu et al., Linear-Time Self Attention with Codeword Histogram for Efficient Recommendation, WWW 2021."),
    ("SMA", "C. Chen et al., Self-Modulating Attention in Continuous Time Space, ICML 2021."),
    ("LinRec", "L. Liu et al., LinRec: Linear Attention Mechanism for Long-term Sequential Recommender Systems, SIGIR 2023."),
    ("LRURec", "Z. Yue et al., Linear Recurrent Units for Sequential Recommendation, WSDM 2024."),
    ("HSTU", "J. Zhai et al., Actions Speak Louder than Words, ICML 2024."),
    ("DIN", "G. Zhou et al., Deep Interest Network for Click-Through Rate Prediction, KDD 2018."),
    ("SHAN", "H. Ying et al., Sequential Recommender System based on Hierarchical Attention Network, IJCAI 2018."),
    ("Linformer", "S. Wang et al., Linformer: Self-Attention with Linear Complexity, 2020."),
    ("Reformer", "N. Kitaev, Ł. Kaiser and A. Levskaya, Reformer: The Efficient Transformer, ICLR 2020."),
    ("Sinkhorn Transformer", "Y. Tay et al., Sparse Sinkhorn Attention, ICML 2020."),
    ("Routing Transformer", "A. Roy et al., Efficient Content-Based Sparse Attention with Routing Transformers, TACL 2021."),
    (
        "Clustered attention",
        "A. Vyas, A. Katharopoulos and F. Fleuret, Fast Transformers with Clustered Attention, NeurIPS 2020.",
    ),
    ("RecBole", "W. X. Zhao et al., RecBole: towards a unified framework for recommendation algorithms, CIKM 2021."),
    ("Adjusted mutual information", "N. X. Vinh, J. Epps and J. Bailey, JMLR 11, 2010."),
)


def equations() -> pd.DataFrame:
    rows = [(e.equation, e.says, f"{e.module}: {e.name}", e.test) for e in EQUATIONS]
    return pd.DataFrame(rows, columns=["equation", "what it says", "module", "guarded by"])


def terms() -> pd.DataFrame:
    """Data sources with their official address and terms."""
    rows = [(s.label, s.remote.url, s.licence) for s in SOURCES.values()]
    return pd.DataFrame(rows, columns=["data", "official address", "terms and citation"])


def pairs(rows: tuple[tuple[str, str], ...], names: tuple[str, str]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(names))
