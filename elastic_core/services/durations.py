"""How long something takes or has taken, in words."""


def format_clock(seconds: float) -> str:
    """`0:42`, `12:05`, `1:02:03`."""
    hours, rest = divmod(round(max(seconds, 0)), 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"


def format_duration(seconds: float) -> str:
    """A duration no more exact than it is known: `about 40 seconds`, `about 2½ minutes`."""
    if seconds < 1:
        return "less than a second"
    if seconds < 5:
        return "a few seconds"
    if seconds < 55:
        return f"about {round(seconds / 5) * 5} seconds"
    halves = round(seconds / 30)
    whole_minutes = str(halves // 2) if halves > 1 else ""
    unit = "minute" if halves == 2 else "minutes"
    return f"about {whole_minutes}{'½' if halves % 2 else ''} {unit}" if seconds < 3600 else f"about {seconds / 3600:.1f} hours"
