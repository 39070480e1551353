"""Evidence: is it true? Three depths of the same measurements: claims, the table of systems, any two runs."""

from pages.evidence import claims, pair, systems
from pages.kit import view
from pages.kit.control import switch

DEPTHS = {"Claims": claims.show, "Systems": systems.show, "Two runs": pair.show}

view.title("Is it true, and how sure is that?")
DEPTHS[switch("How deep", list(DEPTHS), "ev_depth")]()
