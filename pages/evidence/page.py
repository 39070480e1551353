"""Evidence: is it true? Two depths of the same measurements: claims, and the table of systems with their paired differences."""

from pages.components import page_elements
from pages.components.controls import choose_without_label
from pages.evidence import claims, systems

DEPTHS = {"Claims": claims.show_claims, "Systems": systems.show_systems}

page_elements.show_title("Is it true, and how sure is that?")
DEPTHS[choose_without_label("How deep", list(DEPTHS), "ev_depth")]()
