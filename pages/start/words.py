"""What the strip on the start page says. `{}` is filled in by strip.js, once each time a path is lit."""

from typing import Any

from elastic_core.services.person.inspect import Words
from pages.kit import prose

SAYS = prose.of(__file__)


def says(words: Words, k: int, votes: bool, gives: bool, shown: int, earlier: int, can_read: bool) -> dict[str, Any]:
    """`k` experts were chosen; do events have `votes`, and suggestions experts that `give` them?"""
    one, many = words.one, words.many
    rest = SAYS("REST", what=f"{words.a} or an expert" if k else words.a)
    holds = "holds" if gives else "reads"
    order = f"what each then {holds}" if can_read else "in order"
    edges = "this person’s votes by row and column" if votes else "how well each row and column fits the query"
    last = f"The last {shown} {many}"
    return {
        **SAYS.named("STRIP", one=one, many=many, did=words.did, holds=holds),
        "rest": rest if gives or not k else f"{rest} {SAYS('NO_VOTES', one=one)}",
        "history": [f"1 · {last}", f"after {earlier:,} earlier" if earlier else "oldest first", last],
        "search": [
            "2 · The search", f"each {one} votes (thin lines)" if votes else "one query asks for experts",
            f"A square is an expert. Stronger colour: more people use it. Strips: {edges}.",
        ],
        "experts": [f"3 · The {k} experts chosen" if votes else f"3 · The {k} best experts", order, "Chosen experts, best first"],
        "list": [
            f"{'4' if k else '2'} · What comes next", "who suggests it" if gives else "best first", "Suggestions, best first",
        ],
        "of": {
            "event": {"experts": f"how much of it is this {one}", "list": f"change without this {one}"},
            "expert": {
                "events": f"dashed: part of what {{}} {holds}",
                "list": "part that {} gives" if gives else "change without expert {}",
            },
            "item": {
                "events": "part of what {} holds" if gives else f"change without the {one}",
                "experts": "part in this suggestion" if gives else "change without the expert",
            },
        },
    }  # fmt: skip
