"""What the screens say is plain English for somebody who learned it as a second language (about B2 of the CEFR).

Checked are the sections of every `words.md` and all sentences in the code of the pages, of the services and of a study: sentences
are short, texts are easy by a readability index, words are frequent ones (wordfreq) or stand in the glossary, and no word is one
that only this project uses.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from pages.kit import prose

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "pages"
SPEAK = (PAGES, ROOT / "elastic_core/services", ROOT / "elastic_core/study")
NOT_SAID = ("frame/wake.py", "tour/classes.py", "study/sheet.py", "data/shelf.py")  # a log, SQL, CSS, an example file
LONGEST, GRADE, RARE = 22, 9.5, 3.2  # words a sentence, years of school (Automated Readability Index), Zipf frequency
# Words that a newcomer cannot know: this project's own, or statistics that belongs behind "How sure?".
BANNED = (
    "misread", "unmet", "the usual", "shared among like", "half comparison", "asks so", "own × 0", "gauge", "graft", "deviations",
    "retrieves them", "staircase", "router", "ballot", "erase", "at its word", "footing", "as busy", "told what was met",
    "the ten hold", "marginal", "what only counts", "way back", "standing",
)  # fmt: skip
# Terms of the field and names: each is explained where a screen needs it first, or on Method.
GLOSSARY = {
    "100k", "act", "aggregate", "attention", "codebook", "codeword", "config", "convolution", "cosine", "csv", "ctreg",
    "diagonal", "dispatch", "dropout", "elastic", "epoch", "expert", "exponent", "gini", "hash", "hashe", "histogram",
    "holm", "hstu", "html", "json", "key", "kl", "lisa", "log2", "lorenz", "memory", "millisecond", "movielens", "ndcg",
    "parameter", "pca", "permutation", "pkm", "pop100", "quadratic", "reassembled", "recbole", "recursive", "retrieve",
    "r²", "sasrec", "skewness", "softmax", "sub", "trustworthiness", "umap", "whitening", "worksheet", "xlong",
}  # fmt: skip


def known(word: str) -> bool:
    """Is this a frequent word or a term of the glossary, or one of their forms (keys, rarer, dispatched)?"""
    from wordfreq import zipf_frequency  # not where tests are collected: half a second in every process

    stems = {word, *(word.removesuffix(end) for end in ("s", "d", "ed", "r", "er", "st", "est"))}
    return bool(stems & GLOSSARY) or any(zipf_frequency(stem, "en") >= RARE for stem in stems)


def sections() -> Iterator[tuple[str, str]]:
    """Place and text of all that a `words.md` says; formulas and names of tests are nobody's to read aloud."""
    for path in sorted(PAGES.rglob("words.md")):
        for name, section in prose.of(str(path)).sections.items():
            said = "\n\n".join(part for part in section.split("\n\n") if not part.startswith(("Formula:", "Test:")))
            yield f"{path.relative_to(PAGES)}::{name}", said


def sentences_in_code() -> Iterator[tuple[str, str]]:
    """Place and text of every string of six words or more in the pages' code, with 7 for every value."""
    for path in sorted(path for room in SPEAK for path in room.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        owners = [node for node in ast.walk(tree) if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)) and node.body]
        quiet = {id(node.body[0].value) for node in owners if isinstance(node.body[0], ast.Expr)}
        inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(tree):
            if id(node) in quiet or id(node) in inside:
                continue
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
            elif isinstance(node, ast.JoinedStr):
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "7" for part in node.values)
            else:
                continue
            if (
                len(re.findall(r"[A-Za-z]{2,}", text)) >= 6
                and "::" not in text
                and "display:" not in text.replace(" ", "")
                and not re.search(r"(19|20)\d\d$", text)  # a source
                and not text.lstrip().startswith(("python -m", "<", "--", "padding:", "elastic_core/", "tuple["))
            ):
                yield f"{path.relative_to(path.parents[1])}:{node.lineno}", text


def plain(text: str) -> str:
    """Return the words that a reader sees: no code, marks, links, icons or placeholders."""
    text = re.sub(r"```.*?```|`[^`]*`|\$[^$]*\$|:material/\w+:|https?://\S+|python -m [^.]*", " it ", text, flags=re.S)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\{[^{}]*\}", "7", text)
    return re.sub(r"[*_#>|]|^\s*[-\d.]+\s", " ", text, flags=re.M)


def faults(text: str) -> list[str]:
    """Return what makes a text hard to read."""
    from textstat import automated_readability_index

    found, said = [], plain(text)
    for sentence in re.split(r"(?<=[.!?:;])\s+|\n\n|\s[·-]\s", said):
        words = re.findall(r"[^\W\d_][\w’'-]*", sentence)
        if len(words) > LONGEST:
            found.append(f"{len(words)} words: {sentence.strip()!r}")
    if len(re.findall(r"\w+", said)) >= 15 and (grade := automated_readability_index(said)) > GRADE:
        found.append(f"grade {grade:.1f}")
    found += [f"banned: {word}" for word in BANNED if re.search(rf"\b{re.escape(word)}\b", said, re.I)]
    for word in re.findall(r"[^\W\d_][\w’'²-]*", said):
        parts = [part.removesuffix("7") for part in re.split(r"[-’']", word.lower()) if len(part) > 2]  # a value right behind
        found += [f"rare: {part}" for part in parts if not known(part)]
    return found


def test_what_a_screen_says_can_be_read_once() -> None:
    said = [found for found in (*sections(), *sentences_in_code()) if not found[0].startswith(NOT_SAID)]
    assert len(said) > 900 and not {place: found for place, text in said if (found := faults(text))}


def test_hard_sentences_are_found() -> None:
    """The sentence that made this test: nobody can paraphrase it."""
    hard = (
        "Each film votes for the experts it fits; most votes above the usual, shared among like experts, retrieve 8 of 256 "
        "interest experts through whose standing all the 1,349 films of the catalogue that nobody here has met are ranked."
    )
    found = " ".join(faults(hard))
    assert all(fault in found for fault in ("banned: the usual", "grade", " words: "))
    assert not faults("Every film points to experts that fit it. The 8 experts pointed to most are used to rank all films.")


def test_every_section_is_shown_and_every_chart_explained() -> None:
    for path in PAGES.rglob("words.md"):
        code = "\n".join(module.read_text(encoding="utf-8") for module in path.parent.glob("*.py"))
        for name, section in prose.of(str(path)).sections.items():
            assert re.search(rf"[\"' ]{re.escape(name)}[\"' ]", code), f"{path}: nothing shows {name}"
            if "\n\nCareful:" in section:
                about = prose.about_of(section)
                assert about.question.endswith("?"), f"{path}: {name}"
