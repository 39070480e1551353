"""Every parameter of an address, fuzzed: each case gives all parameters of a page a value at once, likely and unlikely ones.

What is ours reads 200 cases each here (`edits`, `expert`, `lock`), whole pages two, because each takes
seconds; ELASTIC_FUZZ_CASES=2000 makes them as many.
"""

import os
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as reproducibly
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest
from test_addresses import NONSENSE, PAGES, controls
from visits import visit

from elastic_core.errors import InputError
from elastic_core.services import edits
from pages.components import page_context
from pages.layout import sidebar

CASES = int(os.environ.get("ELASTIC_FUZZ_CASES", "2"))
READS = settings(max_examples=int(os.environ.get("ELASTIC_FUZZ_CASES", "200")), deadline=None)
JUNK = st.one_of(
    st.text(max_size=60),
    st.text(st.characters(categories=("Nd", "No", "Nl", "Sm", "Cf", "Zs")), max_size=8),
    st.sampled_from([value for kind in NONSENSE.values() for value in kind]),
    st.integers(-(2**70), 2**70).map(str),
    st.floats().map(str),
    st.lists(st.integers(-3, 300).map(str), max_size=30).map(",".join),
    st.sampled_from(["true", "false", "None", "null", "[]", "{}", "1e1", "1e400", "-0", "0x10", "１２", "٣", "½"]),
)
SEEDED = {  # what the frame reads beside its boxes, as it would be right
    "class": ["ABCDEF", "abcdef"], "teach": ["A" * 16, "a-_" * 5 + "b"], "present": ["true", "false"], "tour": ["99"],
    "lock": ["run", "run,user,exp_part"], "who": ["1", "80"], "exp_part": ["Turn it"], "edits": ["-2,+3,x7*2", "-1..4"],
}  # fmt: skip
KINDS = ("selectbox", "multiselect", "segmented_control", "pills", "number_input", "slider", "select_slider", "toggle")


class Page:
    """A page, what each of its controls offers, and how it is opened by an address alone, with nothing seen before."""

    def __init__(self, path: str) -> None:
        self.path = path
        app = visit(path)
        self.hash = app._finished_page_script_hash
        self.able: dict[str, list[str]] = {key: list(values) for key, values in SEEDED.items()}
        for kind in KINDS:
            for each in app.get(kind):
                options = [str(option) for option in getattr(each, "options", [])]
                seen = options or [str(limit) for limit in (getattr(each, "min", 0), getattr(each, "max", 1))]
                self.able[str(each.key)] = seen + self.able.get(str(each.key), [])

    def open(self, address: dict[str, str]) -> AppTest:
        return visit(self.path, address)

    def addresses(self) -> st.SearchStrategy[dict[str, str]]:
        """A value for every parameter of the app: half of the time what the control offers, else something else, or none."""
        given_to = {}
        for key in {*controls(), *self.able} - {"None", "embed"}:
            offered = self.able.get(key, [])
            given_to[key] = st.one_of(JUNK, *([st.sampled_from(offered)] * 2 if offered else []), st.just(""))
        return st.fixed_dictionaries({}, optional=given_to)


@pytest.fixture(scope="module", params=PAGES)
def page(request: pytest.FixtureRequest, tiny_runs: Path) -> Page:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page_context, "RUNS", tiny_runs)
        return Page(request.param)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_no_address_breaks_a_page(page: Page, tiny_runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_context, "RUNS", tiny_runs)
    seed = int(os.environ.get("ELASTIC_FUZZ_SEED", "0"))

    @settings(
        max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck), database=None, derandomize=CASES < 10,
        phases=(Phase.generate,),
    )  # fmt: skip
    @given(page.addresses())
    def visit(address: dict[str, str]) -> None:
        app = page.open(address)
        assert not app.exception, (app.exception, address)
        assert not app.get("error") or all("Traceback" not in each.value for each in app.error)
        assert app.selectbox(key="run").value in ("tiny", "tiny-peer")
        elsewhere = address.get("tour", "").strip().isdecimal()  # a stop of the tour is on a page of its own
        assert app.title and (elsewhere or app._finished_page_script_hash == page.hash), "this page, and no other, was opened"

    (reproducibly(seed)(visit) if seed else visit)()


# --- what is read by us, 2,000 cases each ------------------------------------------------------------------------------


EDITS = r"((-[0-9]{1,7}(\.\.[0-9]{1,3})?|[+ ][0-9]{1,10}|x[0-9]{1,3}(\*[0-9.]{1,5})?),){0,120}"


@pytest.mark.slow
@READS
@given(JUNK | st.from_regex(EDITS, fullmatch=True))
def test_edits_are_read_or_refused(asked: str) -> None:
    try:
        made = edits.parse_edits(asked.removesuffix(","))
        edits.check_edits(made, n_events=20, n_items=60, n_experts=64)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert edits.parse_edits(edits.format_edits(made)) == made and len(made) <= edits.MOST_EDITS
        assert len(edits.apply_edits(np.arange(1, 21), made).items)


@pytest.mark.slow
@READS
@given(JUNK)
def test_numbers_of_experts_are_read_as_streamlit_reads_them(text: str) -> None:
    if sidebar._is_below(text, 64):
        assert 0 <= int(float(text)) < 64


@pytest.mark.slow
@READS
@given(JUNK)
def test_what_is_quoted_stays_one_piece_of_code(text: str) -> None:
    assert re.fullmatch(r"`[^`\n]{1,40}`|without a name", page_context.quote_code(text))
