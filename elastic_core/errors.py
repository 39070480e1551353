"""One exception for everything a person can put right: its message is one clear sentence."""


class InputError(ValueError):
    """Bad input from outside (a file, a flag, a run folder, a link). Shown as it is; the command line exits with 2."""
