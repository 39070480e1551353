"""What the Speed page says about its charts."""

from pages.kit.view import About

TIME = About(
    "How does the time to read a history grow with its length?",
    "All systems take turns in one process on the same random histories (full, random weights, no dropout), until the state "
    "that scores the next item; both compute only the last row in the last layer, ELASTIC includes its retrieval. Mark: median "
    "over rounds per history; line: quartiles; wide dots: a line through the logarithms, its slope the exponent.",
    "At small N fixed costs flatten every curve, so an exponent depends on where the fit starts. A busy machine stretches all. A "
    "crossing holds for this machine, batch, d and k; on a GPU it lies elsewhere.",
    formula=r"t \approx c \cdot N^{e}",
    test="tests/test_efficiency.py::test_the_fit_finds_the_exponent_of_a_power_law",
)
MEMORY = About(
    "How much memory does reading one history need?",
    "The most bytes of tensors alive at a time, per history, beyond weights and input.",
    "Scratch space inside operators is not seen. “90% less memory” holds against the eager form, which alone has N × N scores.",
    test="tests/test_bench.py::test_peak_memory_follows_births_and_deaths",
)
STAGES = About(
    "Where does ELASTIC spend its time?",
    "Inside the pass itself, a clock at every stage, all layers added up; in turns with a pass without clocks. Causal "
    "aggregating and dispatching are one operation: dispatch.",
    "The clocks cost a little, so the sum is more than the whole. The catalogue’s size decides the share of scoring.",
    test="tests/test_efficiency.py::test_the_stages_are_all_of_the_pass",
)
STEPS = About(
    "Where does a step of training go?",
    "As the stages, there and back; what a stage is first to keep is its own. All rows, no dropout, no loss over items.",
    "Between stages, torch adds up gradients.",
    test="tests/test_efficiency.py::test_a_stage_is_charged_with_what_it_does",
)
EVENT = About(
    "What does one more event cost after a history of N?",
    "Kept are L × k running sums a head, the convolution’s last events and the interests; a step equals a batch pass over a "
    "window. A refresh, every 50 events, asks the memory anew: positions count from the window’s end.",
    "A SASRec that keeps keys and values does not read again either, but its step and store grow with N; older measurements lack "
    "that curve. With one person at a time a step is mostly fixed costs.",
    test="tests/test_contracts.py::test_who_claims_to_stream_equals_the_batch_pass_event_by_event",
)
CALCULATOR = About(
    "What do the formulas say, machine aside?",
    "Floating-point operations of one forward pass that scores the next item; a multiplication and its addition count as two, "
    "norms, softmaxes and what is done once a batch are left out. Fused causal attention skips half of N × N. C: chunk of the "
    "running sums.",
    "Fewer operations need not take less time: small products keep a processor less busy, and below a few hundred events "
    "memory traffic and the number of operations decide.",
    test="tests/test_efficiency.py::test_the_calculator_agrees_with_torchs_counter",
)
CLAIMS = About(
    "Is LISA as small, as steady and as fast as its paper says?",
    "Bytes: a file of the item table against one of its codebooks and codes. One more event: whole layers; LISA keeps counts, "
    "the Transformer keys and values. Attention alone: 16,384 events a batch, the Transformer’s projections included, LISA’s "
    "tables looked up; processor time, and the most bytes of tensors alive. Untrained: none of it depends on what was learned.",
    "“Written out” keeps N × N scores, as the paper’s Transformer does; fused attention is the usual one today and is not in the "
    "paper. A processor is not a V100: the shape may be compared, the size of a figure not.",
    test="tests/test_lisa_costs.py::test_a_figure_is_a_ratio_of_one_measurement",
)
