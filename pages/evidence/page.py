"""Evidence: is it true? Two depths of the same measurements: claims, and the table of systems with their paired differences."""

from pages.components import view
from pages.components.control import switch
from pages.evidence import claims, systems

DEPTHS = {"Claims": claims.show, "Systems": systems.show}

view.title("Is it true, and how sure is that?")
DEPTHS[switch("How deep", list(DEPTHS), "ev_depth")]()
