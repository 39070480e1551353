"""What the strip on the start page says. `{}` is filled in by strip.js, once each time a path is lit."""

from typing import Any

from elastic_core.services.person.inspect import Words

REST = "Point at anything: its path lights up with its numbers. Click {a} or an expert to take it away."
REST_PLAIN = "Point at anything: its path lights up with its numbers. Click {a} to take it away."
NO_VOTES = (
    "Here the whole history searches as one. So no {one} has votes of its own, and no suggestion belongs to one expert. Numbers "
    "say what changes without a part."
)


def says(words: Words, k: int, votes: bool, gives: bool, shown: int, earlier: int, can_read: bool) -> dict[str, Any]:
    """`k` experts were chosen; do events have `votes`, and suggestions experts that `give` them?"""
    one, many = words.one, words.many
    rest = (REST if k else REST_PLAIN).format(a=words.a)
    holds = "holds" if gives else "reads"
    order = f"what each then {holds}" if can_read else "in order"
    edges = "this person’s votes by row and column" if votes else "how well each row and column fits the query"
    last = f"The last {shown} {many}"
    return {
        "rest": rest if gives or not k else f"{rest} {NO_VOTES.format(one=one)}",
        "history": [f"1 · {last}", f"after {earlier:,} earlier" if earlier else "oldest first", last],
        "search": [
            "2 · The search", f"each {one} votes (thin lines)" if votes else "one query asks for experts",
            f"A square is an expert. Stronger colour: more people use it. Strips: {edges}.",
        ],
        "experts": [f"3 · The {k} experts chosen" if votes else f"3 · The {k} best experts", order, "Chosen experts, best first"],
        "list": [
            f"{'4' if k else '2'} · What comes next", "who suggests it" if gives else "best first", "Suggestions, best first",
        ],
        "grid": "All experts, one square each. Arrow keys move; Enter silences a chosen one.",
        "gone": ", taken away", "quiet": ", silenced", "gold": f"really {words.did} next", "left": "Left the list:",
        "open": "Open expert", "expert": "expert", "Expert": "Expert", "holds": holds,
        "asksFor": "votes for experts", "makes": "makes up", "ofWhat": "of what expert", "and": "and", "without": "Without",
        "probability": "the probability of", "its": "its probability", "from": "from",
        "others": "from other experts", "alone": "from no expert",
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
        "agrees": "No other expert’s removal lowers it more: lines and removals agree.",
        "differs": "But without expert {} it {}: here lines and removals disagree.",
        "nobody": "no single expert suggests it",
        "mixed": "it belongs to no single expert. Without expert {} its probability falls most: it {}.",
        "goneLong": "{} is taken away. Click to bring it back.", "quietLong": "Expert {} is silenced. Click to bring it back.",
        "square": "Expert {}: row {}, column {}. {} people use it; not chosen here.",
        "fewer": f"The lit {many} vote for it, but other experts have more votes.",
    }  # fmt: skip
