"""The short words of the page on product keys; its sentences are in words.md."""

from pages.kit import prose

SAYS = prose.of(__file__)
TITLE = "How can a few comparisons find the best experts, exactly?"
TOY, OWN, MILLION = "4 × 4", "This person", "A million"
SURE = "Proofs"

PICTURE = SAYS.named("PICTURE")
