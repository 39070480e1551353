"""What the Speed page says about its charts."""

from pages.kit.view import About

TIME = About(
    "How does the time to read a history grow with its length, and who is faster where?",
    "All systems take turns in one process on the same random histories (full, no padding, random weights, no dropout), "
    "after a warm-up; the mark is the median over rounds divided by the batch, the line the quartiles. The time is until the "
    "state that scores the next item is there; both get the trick of computing only the last row in the last layer. ELASTIC "
    "includes query network and retrieval. Dashed: a straight line through the logarithms over the lengths it covers; its "
    "slope is the exponent.",
    "An exponent is not a law: at small N fixed costs flatten every curve, so it depends on where the fit starts. A busy "
    "machine stretches everything. A crossing holds for this machine, batch, d and k only; on a GPU it lies elsewhere.",
    formula=r"t \approx c \cdot N^{e}",
    test="tests/test_efficiency.py::test_the_fit_finds_the_exponent_of_a_power_law",
)
MEMORY = About(
    "How much memory does reading one history need?",
    "The most bytes of tensors alive at a time during the pass, beyond weights and input, divided by the batch.",
    "Scratch space inside an operator is not seen. SASRec’s N × N scores exist only in the eager form; fused attention never "
    "has them, so “90% less memory” is a statement about the eager form.",
    test="tests/test_bench.py::test_peak_memory_follows_births_and_deaths",
)
STAGES = About(
    "Where does ELASTIC spend its time?",
    "Every stage timed by itself with the inputs that the pass would give it, both layers added up, in turns with the whole "
    "pass. In the causal form aggregating and dispatching are one operation; it counts as dispatch.",
    "Stages do not add up to the whole exactly: what stands in the cache differs. The catalogue’s size decides the share of "
    "scoring.",
    test="tests/test_efficiency.py::test_the_stages_are_all_of_the_pass",
)
EVENT = About(
    "What does one more event cost after a history of N?",
    "ELASTIC’s kept state is L × k running sums a head, the last events for the convolution and the interests: a new event "
    "is added to the sums. It equals one batch pass over a window, event by event. The others read the last N events again. "
    "A refresh asks the memory anew; it is due every 50 events here, because positions count from the window’s end.",
    "A SASRec that keeps its keys and values does not read again either; its step and what it keeps grow with N. Where a "
    "measurement has no such curve, it was made before that was built. With one person at a time a step is mostly fixed costs.",
    test="tests/test_contracts.py::test_who_claims_to_stream_equals_the_batch_pass_event_by_event",
)
CALCULATOR = About(
    "What do the formulas say, machine aside?",
    "Floating-point operations of one forward pass that scores the next item, a multiplication and its addition as two; "
    "norms, softmaxes and work done once a batch are left out. Fused causal attention skips the upper half of the N × N "
    "products. C is the chunk of the running sums.",
    "Fewer operations are not less time: small k × d products keep a processor less busy than large ones, and below a few "
    "hundred events memory traffic and the number of operations decide.",
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
