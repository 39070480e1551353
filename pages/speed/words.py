"""What the Speed page says about its charts."""

from pages.kit.view import About

TIME = About(
    "How does the time grow?",
    "In turns, in one process, on the same random histories (full, random weights, no dropout), until the state that scores the "
    "next item; of the last layer only the last row; ELASTIC’s includes retrieval. Mark: median over rounds; line: quartiles; "
    "wide dots: a line through the logarithms, its slope the exponent.",
    "At small N fixed costs flatten all: exponents depend on where the fit starts. A busy machine stretches all. Crossings are "
    "of this machine, batch, d and k; a GPU’s lie elsewhere.",
    formula=r"t \approx c \cdot N^{e}",
    test="tests/test_efficiency.py::test_the_fit_finds_the_exponent_of_a_power_law",
)
MEMORY = About(
    "How much memory?",
    "Most bytes of tensors alive at a time, per history, beyond weights and input.",
    "Scratch space inside operators is not seen. “90% less memory” holds against eager, which alone has N × N scores.",
    test="tests/test_bench.py::test_peak_memory_follows_births_and_deaths",
)
STAGES = About(
    "Where does the time go?",
    "Each stage alone with the pass’s inputs, in turns with the whole, layers added up. Causal aggregating and dispatching are "
    "one operation: dispatch.",
    "The sum is not the whole: the cache differs. The catalogue’s size decides the share of scoring.",
    test="tests/test_efficiency.py::test_the_stages_are_all_of_the_pass",
)
EVENT = About(
    "What does one more event cost?",
    "Kept: L × k running sums a head, the convolution’s last events, the interests; a step equals a batch pass over a window. A "
    "refresh, every 50 events, asks the memory anew: positions count from the window’s end.",
    "SASRec with kept keys and values does not read again either; its step and store grow with N; older measurements lack the "
    "curve. With one person a step is mostly fixed costs.",
    test="tests/test_contracts.py::test_who_claims_to_stream_equals_the_batch_pass_event_by_event",
)
CALCULATOR = About(
    "What do the formulas say?",
    "Floating-point operations of one forward pass that scores the next item; a multiplication and its addition are two; no "
    "norms, softmaxes, once-a-batch work. Fused causal attention skips half of N × N. C: chunk of the running sums.",
    "Fewer need not be faster: small products keep a processor less busy; below a few hundred events memory traffic and the "
    "number of operations decide.",
    test="tests/test_efficiency.py::test_the_calculator_agrees_with_torchs_counter",
)
CLAIMS = About(
    "As small, steady and fast as its paper says?",
    "Bytes: a file of the item table against codebooks and codes. One more event: whole layers; LISA keeps counts, the "
    "Transformer keys and values. Attention alone: 16,384 events a batch, with the Transformer’s projections, LISA’s tables "
    "looked up; processor time, most bytes of tensors alive. Untrained: learning changes nothing.",
    "“Written out” keeps N × N scores, as the paper’s Transformer; fused attention, usual today, is not in the paper. A "
    "processor is no V100: compare shapes, not sizes.",
    test="tests/test_lisa_costs.py::test_a_figure_is_a_ratio_of_one_measurement",
)
