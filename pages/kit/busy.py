"""How busy an expert is against a router that picks at random, in words: the same on every screen."""

WORDS = {
    "hot": "busier than chance", "usual": "as busy as chance allows", "cold": "quieter than chance",
    "dead": "retrieved by nobody",
}  # fmt: skip
