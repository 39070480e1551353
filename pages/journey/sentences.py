"""What the Journey page says: text.md."""

from pages.components import page_text

TEXT = page_text.load_page_text(__file__)
EXPERTS, LISTS, INFLUENCE, READING, ALONG, DISPATCHER = TEXT.chart_texts("EXPERTS LISTS INFLUENCE READING ALONG DISPATCHER")
