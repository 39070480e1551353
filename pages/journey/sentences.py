"""What the Journey page says: text.md."""

from pages.components import prose

TEXT = prose.page_text(__file__)
EXPERTS, LISTS, INFLUENCE, READING, ALONG, DISPATCHER = TEXT.abouts("EXPERTS LISTS INFLUENCE READING ALONG DISPATCHER")
