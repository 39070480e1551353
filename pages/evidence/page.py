"""Evidence: is it true? Three depths of the same measurements: claims, the table of systems, any two runs."""

from pages.evidence import claims, pair, systems
from pages.kit import view
from pages.kit.control import one_of

DEPTHS = {"Claims": claims.show, "Systems": systems.show, "Two runs": pair.show}

view.title("Is it true, and how sure is that?")
DEPTHS[one_of("How deep", list(DEPTHS), key="ev_depth", label_visibility="collapsed")]()
