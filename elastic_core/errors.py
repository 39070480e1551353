"""One exception for everything a person can put right: its message is one clear sentence. And what an allocator says."""

NO_MEMORY = "this needs more memory than the machine has; give it less data or a smaller model"
REFUSALS = ("can't allocate memory", "not enough memory", "out of memory", "bad_alloc", "ALLOC_FAILED")  # of torch's allocators
ONEDNN = "could not create a primitive"  # all that it says where an allocator refused it


class InputError(ValueError):
    """Bad input from outside (a file, a flag, a run folder, a link). Shown as it is; the command line exits with 2."""


class Elsewhere(InputError):
    """Said by another process already: whoever shows errors shows none of these."""


def value_text(value: object) -> str:
    """A value for a sentence, cut where it would fill a page."""
    try:
        text = repr(value)
    except ValueError:  # a number of more digits than Python writes
        return "a number of thousands of digits"
    return text if len(text) <= 60 else text[:59] + "…"


def out_of_memory(error: BaseException) -> bool:
    """Did an allocator refuse? Python and NumPy raise MemoryError, torch a RuntimeError, of a class of its own for GPUs alone."""
    if not isinstance(error, RuntimeError):
        return isinstance(error, MemoryError)
    message = str(error)
    return type(error).__name__ == "OutOfMemoryError" or message == ONEDNN or any(words in message for words in REFUSALS)


def unless_memory(error: BaseException) -> None:
    """For an `except` that means something else: what an allocator refused goes on to who can say what to reduce."""
    if out_of_memory(error):
        raise error
