"""What the strip on the start page says. `{}` is filled in by strip.js, once each time a path is lit."""

from elastic_core.services.person.inspect import Words

REST = "Point at anything: its path lights up with its numbers. Click {a} or an expert to take it away."
REST_PLAIN = "Point at anything: its path lights up with its numbers. Click {a} to take it away."
NO_VOTES = (
    "Here the whole history asks as one, so no {one} has votes of its own, and experts mix into one vector, so no suggestion "
    "belongs to one. Numbers say what a removal changes."
)


def says(words: Words, k: int, votes: bool, gives: bool, shown: int, earlier: int, can_read: bool) -> dict[str, str | list[str]]:
    """`k` experts were chosen; do events have `votes`, and suggestions experts that `give` them?"""
    one, many = words.one, words.many
    rest = (REST if k else REST_PLAIN).format(a=words.a)
    order = ("what each keeps" if gives else "what each reads") if can_read else "in order"
    last = f"The last {shown} {many}"
    return {
        "rest": rest if gives or not k else f"{rest} {NO_VOTES.format(one=one)}",
        "history": [f"1 · {last}", f"after {earlier:,} earlier" if earlier else "oldest first", last],
        "search": [
            "2 · The search", f"each {one} asks: row + column" if votes else "one query asks: row + column",
            "A square is an expert; stronger colour: more people use it. Edges: the average search.",
        ],
        "experts": [f"3 · The {k} most wanted", order, "Chosen experts, best first"],
        "list": [
            f"{'4' if k else '2'} · What comes next", "who suggests it" if gives else "best first", "Suggestions, best first",
        ],
        "grid": "All experts, a square each. Arrow keys walk, Enter silences a chosen one.",
        "gone": ", taken away", "quiet": ", silenced", "gold": f"really {words.did} next", "left": "Left the ten:",
        "open": "Open expert", "expert": "expert", "Expert": "Expert", "keeps": "keeps" if gives else "reads",
        "asksFor": "asks for experts", "without": "Without", "ofChance": " of its chance.", "gives": "It gives", "of": "of",
        "ofIt": "of it", "from": "from", "it": "it", "It": "It",
        "agrees": "No other expert matters more: share and removal agree.",
        "differs": "Removing expert {} does more (it {}): here share and removal disagree.",
        "nobody": "no single expert suggests it",
        "mixed": "no expert owns it. Removing expert {} lowers it most: it {} of its chance.",
        "goneLong": "{} is taken away. Click to bring it back.", "quietLong": "Expert {} is silenced. Click to bring it back.",
        "square": "Expert {}: row {}, column {}. {} people use it; not chosen here.",
        "fewer": "The lit ones ask for it, but others are more wanted.",
    }  # fmt: skip
