"""Files: how those of a run, a job or an upload are read and written.

Read: regular files only (a pipe would wait for ever), no larger than they can be; what is damaged is one sentence. Written: whole
or not at all, beside its place and then renamed; a disk that is full or read-only is one sentence and leaves what was there.
"""

import json
import os
import shutil
import stat
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from elastic_core.errors import InputError, unless_memory

LONGEST_NAME = 100  # characters of a folder's name that a list shows
UMASK = os.umask(0o022)  # what this process takes from new files; it can only be read by setting it
os.umask(UMASK)
LOCK_SECONDS = 2.0  # to wait for a lock: a program that a killed process was just starting may hold it for a moment longer


class FileAbsent(InputError):
    """There is no such file, which often is an answer and no fault."""


class UnreadableFolder(NamedTuple):
    """A folder in a list of runs, jobs or uploads that cannot be one of them, and why: one sentence without its stop."""

    path: Path
    reason: str

    @property
    def name(self) -> str:
        """Fit to be shown and to be looked up by; not unlike names of other folders, if need be."""
        return printable_text(self.path.name)


def is_showable(text: str) -> bool:
    """Whether a text has no control characters, no half characters and nothing that turns the direction of reading."""
    return text.isprintable() or not any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in text)


@contextmanager
def explain_parse_errors(name: str) -> Iterator[None]:
    """Around the reading of a safetensors file, called `name`. Raises InputError for what a parser meets in anybody's file."""
    from safetensors import SafetensorError

    try:
        yield
    except InputError:
        raise
    except (SafetensorError, OSError, ValueError, KeyError, RuntimeError) as error:
        unless_memory(error)
        raise InputError(f"{name} cannot be read ({printable_text(error, 150)}); it may be cut short") from None


def printable_text(text: object, most: int = LONGEST_NAME) -> str:
    """Text of a stranger for a sentence: what is no letter of any script is written out, and a long one is cut."""
    plain = "".join(c if c.isprintable() or c == " " else c.encode("unicode_escape").decode() for c in str(text)[: 2 * most])
    return plain if len(plain) <= most else plain[: most - 1] + "…"


def file_name(path: Path, within: Path) -> str:
    """How sentences call a file: `tiny/config.json`."""
    return f"{folder_name(within)}/{printable_text(path.relative_to(within))}"


def folder_name(path: Path) -> str:
    """`tiny`, of `.` too."""
    return printable_text(path.name or path.resolve().name)


# --- reading ---------------------------------------------------------------------------------------------------------


def check_regular_file(path: Path, most: int, within: Path) -> Path:
    """The path of a regular file of at most `most` bytes. Raises Absent if there is none, InputError for anything else.

    Sentences call it by its place `within` a folder.
    """
    name = file_name(path, within)
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise FileAbsent(f"{folder_name(within)} has no {path.relative_to(within)}") from None
    except OSError as error:
        raise InputError(f"{name} cannot be read ({error_reason(error)})") from None
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{name} is no regular file")
    if status.st_size > most:
        raise InputError(f"{name} has {size_text(status.st_size)}; at most {size_text(most)} are read")
    return path


def file_stamp(path: Path | str) -> tuple[int, ...]:
    """Changes when a file does, or when a folder is another one; nothing for what is not there. Links are not followed."""
    try:
        status = os.lstat(path)
        return status.st_mode, status.st_ino, status.st_size, 0 if stat.S_ISDIR(status.st_mode) else status.st_mtime_ns
    except (OSError, ValueError):
        return ()


def read_bytes(path: Path, most: int, within: Path) -> bytes:
    """The bytes of a file, as `check_regular_file` allows it."""
    try:
        return check_regular_file(path, most, within).read_bytes()
    except OSError as error:
        raise InputError(f"{file_name(path, within)} cannot be read ({error_reason(error)})") from None


def read_text(path: Path, most: int, within: Path) -> str:
    """A UTF-8 text."""
    try:
        return read_bytes(path, most, within).decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{file_name(path, within)} is not a UTF-8 text file") from None


def read_object(path: Path, most: int, within: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    name = file_name(path, within)
    try:
        plain = parse_json(read_text(path, most, within))
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name} is not valid JSON ({error})") from None
    if not isinstance(plain, dict):
        raise InputError(f"{name} must hold an object")
    return plain


def parse_json(text: str) -> Any:
    """JSON. Raises ValueError, in one sentence, for what is none."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"line {error.lineno}: {error.msg}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


# --- names -----------------------------------------------------------------------------------------------------------


def list_entries(root: Path, pattern: str = "*") -> Iterator[Path]:
    """What lies directly in a list's folder, by name, hidden entries left out; nothing where there is no such folder."""
    try:
        entries = sorted(path for path in root.glob(pattern) if not path.name.startswith("."))
    except OSError:
        return
    yield from entries


def check_folder(path: Path) -> None:
    """Raises InputError unless `path`, an entry of a list, is a folder."""
    if not path.is_dir():
        raise InputError("it is no folder")


# --- writing ---------------------------------------------------------------------------------------------------------


def write_whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Lets `write` fill a file beside `path`, then puts it in place in one step.

    Raises InputError if the disk does not take it; what was there stays. FileNotFoundError: the folder itself has gone.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with explain_write_errors(path):
            write(beside)
            beside.chmod(0o666 & ~UMASK)  # as any new file: safetensors lets its owner alone read
            os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    write_whole(path, lambda beside: beside.write_text(text, encoding="utf-8"))


def remove_folder(path: Path, parking: Path) -> None:
    """Takes a folder out of sight in one step, then away. Of a link the link goes, and what it leads to stays."""
    away = parking / f".gone-{path.name}-{time.time_ns()}"
    with explain_write_errors(path):
        parking.mkdir(parents=True, exist_ok=True)  # without it nothing would go, and nobody would hear of it
        try:
            os.replace(path, away)
        except FileNotFoundError:
            return
        if away.is_dir() and not away.is_symlink():
            shutil.rmtree(away, ignore_errors=True)
        else:
            away.unlink(missing_ok=True)


@contextmanager
def explain_write_errors(path: Path) -> Iterator[None]:
    """Turns the refusal of a disk into one sentence about `path`. A folder that somebody removed stays FileNotFoundError."""
    try:
        yield
    except (InputError, FileNotFoundError):
        raise
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error_reason(error)})") from None
    except RuntimeError as error:  # torch's and safetensors' own way of saying that a stream took nothing
        unless_memory(error)
        raise InputError(f"{path} cannot be written; is the disk full?") from None
    except Exception as error:
        if type(error).__name__ != "SafetensorError":
            raise
        raise InputError(f"{path} cannot be written ({error_reason(error)})") from None


def error_reason(error: Exception) -> str:
    """What went wrong, without Python's way of saying it."""
    return getattr(error, "strerror", None) or printable_text(" ".join(str(error).split()), 150)


def size_text(n: int) -> str:
    """`3.2 MB`, `800 bytes`."""
    return f"{n:,} bytes" if n < 2**20 else f"{n / 2**20:,.1f} MB" if n < 2**30 else f"{n / 2**30:,.1f} GB"


def is_count(value: Any) -> TypeGuard[int]:
    """Whether a value from a file is a count."""
    return type(value) is int and 0 <= value < 2**53


def is_number(value: Any) -> TypeGuard[float]:
    """Whether a value from a file is a number, and a finite one."""
    return type(value) in (int, float) and abs(value) < 1e15
