"""What the app's words mean, in one sentence each; pages show them as help."""

EXPERT_LOAD = {"hot": "hot: above chance", "usual": "usual: within chance", "cold": "cold: below chance", "dead": "dead: nobody"}
EXPERT_LOAD_HELP = "Hot experts have more users than chance would give, usual ones as many, cold ones fewer, dead ones none."
WORDS = {
    "history": "the events of one person in order of time",
    "event": "one person chose one item, once",
    "interest expert": "one learned vector of the memory, shared by everybody; it can stand for a kind of taste",
    "memory": "the whole bank of K experts, in a grid of √K rows and √K columns",
    "sub-key": "half a key; each row and each column has one, and an expert’s key is both together",
    "query": "what is compared with the keys; a whole history makes one, as in the paper, or each event makes its own and votes",
    "retrieve": "to find the k experts whose keys match the query best",
    "slot": "what one expert holds of one person: a weighted sum of their items",
    "gate": "multiplies an expert by its score, which lets the keys learn",
    "aggregate": "each expert collects what matches it in the history (Equation 2)",
    "dispatch": "each event takes back what it needs from the experts (Equation 3)",
    "load": "how many people use an expert; traffic also counts how strongly they use it",
    "dead expert": "one that nobody uses",
    "layer": "attention and a small network, through which all events pass once; layers follow each other",
    "causal": "no event reads a later one; in the two-way form, every event reads all others",
    "k-core": "items and people with fewer than k events are dropped, again and again, until none is left",
    "leave-one-out": "the last event is the test, the one before decides when to stop, and the earlier ones train",
    "training seed": "the start of all random draws; another seed gives another result",
    "baseline": "a method that only counts the most popular items, or what followed what",
    "planted world": "made-up people with known interests, so that experts can be compared with the truth",
}
METRICS = {
    "NDCG@10": "1 if the right item is first, 1/log₂(1 + place) down to place ten, then 0",
    "HR@10": "the part of people whose right item is among the first ten",
    "MRR@10": "1/place down to place ten, then 0",
    "full": "against all items that are new to the person; if the right item is not new, it counts as missed",
    "full-seen": "against all items, known ones too; we use this where people often choose an item again",
    "pop100": "against 100 random items, popular ones more often; much easier than against all items",
    "uniform100": "against 100 random new items; much easier than against all items",
    "± 95%": "1.96 standard errors over people; it says nothing about other seeds",
    "ties": "items with equal scores share their places: a constant score is as good as luck",
}
PROTOCOLS = "`full`: all new items; `full-seen`: all; `pop100`, `uniform100`: 100 drawn by popularity or evenly"
