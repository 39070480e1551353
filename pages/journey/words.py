"""What the Journey page says: words.md."""

from pages.kit import prose

SAYS = prose.of(__file__)
EXPERTS, LISTS, INFLUENCE, READING, ALONG, DISPATCHER = SAYS.abouts("EXPERTS LISTS INFLUENCE READING ALONG DISPATCHER")
