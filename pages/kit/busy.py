"""How busy an expert is against a router that picks at random: hot, usual, cold, dead. The same words on every screen."""

from pages.kit.plot import Palette

WORDS = {"hot": "hot: above chance", "usual": "usual: within chance", "cold": "cold: below chance", "dead": "dead: nobody"}
MEANING = "Hot: above a random router’s 95% band; usual: within; cold: below; dead: nobody."


def colour(state: str, colours: Palette) -> str:
    return {"hot": colours.load[-1], "usual": colours.muted, "cold": colours.cool[1], "dead": colours.text}[state]


def people(low: int, high: int) -> dict[str, str]:
    """What each word means in people; `low` to `high` is what the random router gives in 95% of cases."""
    return {"hot": f"over {high:,} people", "usual": f"{low:,} to {high:,}", "cold": f"under {low:,}", "dead": "nobody"}
