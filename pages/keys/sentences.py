"""The short words of the page on product keys; its sentences are in text.md."""

from pages.components import page_text

TEXT = page_text.load_page_text(__file__)
TITLE = "How can a few comparisons find the best experts, exactly?"
TOY, OWN, MILLION = "4 × 4", "This person", "A million"
CONFIDENCE = "Proofs"

PICTURE = TEXT.named_paragraphs("PICTURE")
