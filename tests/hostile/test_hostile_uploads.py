"""Whatever is sent ends in one sentence, or in a dataset with the oddity reported. Nothing else, and nothing left behind."""

import time
from pathlib import Path

import pytest
from corpus import CASES, Case

from elastic_core.data import load
from elastic_core.errors import InputError
from elastic_core.services.data.upload_store import FileOutcome, UploadStore, check_upload, open_upload, preprocess_upload

UNPRINTABLE = {chr(c) for c in range(32)} | {"\u202e"}
QUICK = 20.0  # seconds of processor time, of which making a bomb takes some


def outcome(case: Case) -> FileOutcome:
    sheet, guessed = open_upload(case.name, case.make())
    return preprocess_upload(sheet.label, check_upload(sheet, case.mapping or guessed), 5)


@pytest.mark.parametrize("case", [c for c in CASES if c.refused], ids=lambda c: c.id)
def test_refused_in_one_sentence(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    began = time.process_time()
    with pytest.raises(InputError) as caught:
        UploadStore(tmp_path / "uploads").store_upload(outcome(case))
    sentence = str(caught.value)
    assert case.refused in sentence
    assert len(sentence) < 500 and not UNPRINTABLE & set(sentence) and "Traceback" not in sentence
    assert list(tmp_path.iterdir()) == [], "a refused file leaves nothing behind"
    assert time.process_time() - began < QUICK


@pytest.mark.parametrize("case", [c for c in CASES if not c.refused], ids=lambda c: c.id)
def test_accepted_with_the_oddity_reported(case: Case, tmp_path: Path) -> None:
    found = outcome(case)
    faults, table = found.table.faults, found.table
    reported = [*table.notes, *found.dataset.notes, *(said for _, said in table.understood)]
    assert case.said in " | ".join([*reported, *(f"{faults.unit} {line}: {what}" for line, what in faults.first)])
    assert faults.count == case.left_out
    assert (found.dataset.histories.n_users, found.dataset.catalog.n_items) == (6, 7) or "no-header" in case.id
    for text in (found.label, *reported, *(found.dataset.catalog.titles if found.dataset.catalog.titles is not None else [])):
        assert not UNPRINTABLE & set(text) and len(text) < 500
    assert len(found.label) <= 80 and not set("/\\") & set(found.label)
    shelf = UploadStore(tmp_path / "uploads")
    kept = shelf.store_upload(found)
    again = load(kept.config)
    assert again.hash == found.dataset.hash and list(again.catalog.ids) == list(found.dataset.catalog.ids)
    assert again.label == kept.label and not UNPRINTABLE & set(kept.label)
    assert [path.name for path in (tmp_path / "uploads").iterdir()] == [kept.id]


def test_the_corpus_is_large_and_its_names_are_unique() -> None:
    assert len(CASES) >= 40 and len({c.id for c in CASES}) == len(CASES)
    assert all(c.refused or c.said or not c.left_out for c in CASES)
