"""How busy an expert is beside random experts: hot, usual, cold, dead. The same words on every screen."""

from pages.kit.plot import Palette

WORDS = {"hot": "hot: above chance", "usual": "usual: within chance", "cold": "cold: below chance", "dead": "dead: nobody"}
MEANING = "Hot: used by more people than luck would give. Usual: as many. Cold: fewer. Dead: nobody."


def colour(state: str, colours: Palette) -> str:
    return {"hot": colours.load[-1], "usual": colours.muted, "cold": colours.cool[1], "dead": colours.text}[state]
