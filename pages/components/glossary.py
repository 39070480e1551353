"""What the app's words mean, in one sentence each; pages show them as help."""

EXPERT_LOAD = {"hot": "hot: above chance", "usual": "usual: within chance", "cold": "cold: below chance", "dead": "dead: nobody"}
EXPERT_LOAD_HELP = "Hot: used by more people than luck would give. Usual: as many. Cold: fewer. Dead: nobody."
WORDS = {
    "history": "the events of one person in order of time",
    "event": "one person met one item, once",
    "interest expert": "a vector of learned numbers in the memory; it can stand for a kind of taste",
    "memory": "all K experts, in a grid of √K rows and √K columns",
    "sub-key": "half a key: each row has one, and each column; an expert’s key is both together",
    "query": "what is compared with the keys: one for a whole history, as in the paper, or one for each event, which votes",
    "retrieve": "find the k experts whose keys fit the query best",
    "interest slot (ours)": "what one expert holds of a history; newer events push out older ones",
    "gate": "how much an expert counts, by its score; through it the keys learn",
    "aggregate": "each expert collects what it looks at in the history (Equation 2)",
    "dispatch": "each event reads back what the experts collected (Equation 3)",
    "load": "how many people use an expert; traffic also counts how strongly",
    "dead expert": "one that nobody uses",
    "layer": "all events pass once through attention and a small network; layers follow each other",
    "causal": "no event reads a later one; two-way: all read all",
    "k-core": "items and people with fewer than k events are dropped, again and again, until none is left",
    "leave-one-out": "the last event is the test, the one before chooses when to stop, earlier ones train",
    "training seed": "what random draws begin with; another seed gives another result",
    "baseline": "a method that only counts: the most popular items, or what followed what",
    "planted world": "made-up people with known interests, so that experts can be compared with the truth",
}
METRICS = {
    "NDCG@10": "1 if the right item is first, 1/log₂(1 + place) down to place ten, then 0",
    "HR@10": "the part of people whose right item is among the first ten",
    "MRR@10": "1/place down to place ten, then 0",
    "full": "against all items that are new to the person; our main way",
    "full-seen": "against all items, also those that the person knows",
    "pop100": "against 100 items drawn by popularity, as RecBole does; much easier",
    "uniform100": "against 100 new items, all equally likely to be drawn; easier still",
    "± 95%": "1.96 standard errors over people; it says nothing about other seeds",
    "ties": "items with equal scores share their places: a constant score is as good as luck",
}
PROTOCOLS = "`full`: all new items; `full-seen`: all; `pop100`, `uniform100`: 100 drawn by popularity or evenly"
