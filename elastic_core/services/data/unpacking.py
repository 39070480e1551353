"""What a visitor sends, taken apart without trusting it: sizes are known before anything is unpacked, archives hold one file
and one layer, names never become paths, and nothing is ever unpickled. Every refusal is one InputError sentence.
"""

import io
import re
import unicodedata
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from elastic_core.data.files import refuse_outside
from elastic_core.errors import InputError
from elastic_core.text import DIRECTIONS

MOST_BYTES = 20 * 2**20
MOST_UNPACKED = 100 * 2**20
MOST_RATIO = 200  # how many times larger an archive may become, once it is more than a few megabytes
SMALL = 4 * 2**20
TEXT = (".csv", ".tsv", ".txt", ".dat", ".data", ".inter")
PARQUET = (".parquet", ".pq")
PACKED = (".gz", ".zip")
ENDINGS = (*TEXT, *PARQUET, *PACKED)
ACCEPTED = "CSV, TSV or Parquet, plain or packed as .gz or .zip"

Kind = Literal["text", "parquet"]


@dataclass(frozen=True)
class Unpacked:
    """The one file inside. `shown` is what messages call it, `notes` what was odd about it."""

    data: bytes
    kind: Kind
    shown: str
    notes: tuple[str, ...] = ()


def unpack(name: str, data: bytes) -> Unpacked:
    """The table inside an upload. `name` is only read for its ending and shown; it is never used as a path."""
    shown, notes = shown_name(name), []
    if shown != name:
        notes.append(f"the file's name was shortened to {shown!r}; it is only shown, never used as a path")
    if len(data) > MOST_BYTES:
        raise InputError(f"{shown} has {megabytes(len(data))}; at most {megabytes(MOST_BYTES)} can be sent")
    if not data:
        raise InputError(f"{shown} is empty")
    ending = _ending(shown)
    if ending not in ENDINGS:
        raise InputError(f"{shown} is not a file this page reads: send {ACCEPTED}")
    packing = _packing(data)
    if ending in PACKED and packing != ending:
        raise InputError(f"{shown} is not a complete {ending[1:]} file: pack it again")
    inner = shown
    if packing:
        inner, data = _unzip(data, shown) if packing == ".zip" else (shown.removesuffix(".gz"), _gunzip(data, shown))
        if ending not in PACKED:
            notes.append(f"{shown} is really a {packing[1:]} file, and was read as one")
        _refuse_nested(inner, data, shown)
    kind = _kind(inner, data, notes)
    return Unpacked(data, kind, inner, tuple(notes))


def shown_name(name: str) -> str:
    """A file's own name without folders, control characters and reading-direction marks; at most sixty characters."""
    last = re.split(r"[\\/]", name)[-1]
    plain = "".join(c for c in last if unicodedata.category(c) != "Cc" and c not in DIRECTIONS).strip(" .") or "file"
    if len(plain) <= 60:
        return plain
    ending = "".join(PurePosixPath(plain).suffixes[-2:])[-20:]
    return plain[: 60 - len(ending)] + ending


def megabytes(size: int) -> str:
    return f"{size / 2**20:,.0f} MB" if size >= 10 * 2**20 else f"{size / 2**20:.1f} MB"


def _ending(name: str) -> str:
    return PurePosixPath(name.lower()).suffix


def _packing(data: bytes) -> str:
    """What the first bytes say: `.zip`, `.gz` or nothing."""
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return ".zip"
    return ".gz" if data.startswith(b"\x1f\x8b") else ""


def _kind(name: str, data: bytes, notes: list[str]) -> Kind:
    """Text or Parquet by the first bytes; the name's ending is only compared with them."""
    if not data.strip():
        raise InputError(f"{name} is empty")
    if re.match(rb"\x80[\x02-\x05]", data):
        raise InputError(f"{name} is a Python pickle, which this page never opens: save the table as CSV")
    parquet = data.startswith(b"PAR1")
    if parquet and _ending(name) not in PARQUET:
        notes.append(f"{name} is really a Parquet file, and was read as one")
    if not parquet and _ending(name) in PARQUET:
        raise InputError(f"{name} is not a complete Parquet file: write it again, or save the table as CSV")
    return "parquet" if parquet else "text"


def _refuse_nested(inner: str, data: bytes, shown: str) -> None:
    if _packing(data):
        raise InputError(f"{shown} holds another archive ({inner}): pack the table itself, once")


def refuse_bomb(size: int, packed: int, shown: str) -> None:
    """Raises InputError if `packed` bytes become too many, or many more than a real table's would."""
    if size > MOST_UNPACKED:
        raise InputError(f"{shown} would unpack to more than {megabytes(MOST_UNPACKED)}, which is the limit")
    if size > SMALL and size > MOST_RATIO * packed:
        raise InputError(f"{shown} would grow more than {MOST_RATIO} times when unpacked, as no real table does")


def _gunzip(data: bytes, shown: str) -> bytes:
    """Unpacks in pieces and stops at the limit, whatever the file says about itself."""
    engine, out, rest = zlib.decompressobj(wbits=31), bytearray(), data
    try:
        while rest and not engine.eof:
            out += engine.decompress(rest, SMALL)
            refuse_bomb(len(out), len(data), shown)
            rest = engine.unconsumed_tail
    except zlib.error:
        raise InputError(f"{shown} is not a complete gzip file: pack it again") from None
    if not engine.eof:
        raise InputError(f"{shown} is not a complete gzip file: pack it again")
    if engine.unused_data.strip(b"\0"):
        raise InputError(f"{shown} holds more than one gzip member: pack the table again, in one piece")
    return bytes(out)


def _unzip(data: bytes, shown: str) -> tuple[str, bytes]:
    """Name and bytes of the only member. Its size is checked before and while it is unpacked."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            member = _only_member(archive, shown)
            refuse_bomb(member.file_size, max(member.compress_size, 1), shown)
            with archive.open(member) as file:
                found = file.read(MOST_UNPACKED + 1)
    except InputError:
        raise  # ours already; it is a ValueError, as some of zipfile's are
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, OverflowError, OSError):
        raise InputError(f"{shown} is not a complete zip file: pack it again") from None
    except (RuntimeError, NotImplementedError):
        raise InputError(f"{shown} uses a packing that is not read here: pack it again in the ordinary way") from None
    refuse_bomb(len(found), max(member.compress_size, 1), shown)
    return shown_name(member.filename), found


def _only_member(archive: zipfile.ZipFile, shown: str) -> zipfile.ZipInfo:
    names = archive.namelist()
    if "[Content_Types].xml" in names:
        raise InputError(f"{shown} is a spreadsheet workbook: save the sheet as CSV and send that")
    refuse_outside(names, shown)
    members = [m for m in archive.infolist() if not m.is_dir() and not m.filename.startswith("__MACOSX")]
    if len(members) != 1:
        raise InputError(f"{shown} holds {len(members)} files: pack exactly one table")
    member = members[0]
    if member.flag_bits & 1:
        raise InputError(f"{shown} is protected by a password: pack it without one")
    return member
