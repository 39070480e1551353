"""Bytes as they come: a file, an upload, an archive or a folder, seen as list_members that can be opened and read in pieces.

What a member is, its first bytes say; its name's ending is never trusted. Nothing is unpacked to disk, unpickled or run.
"""

import codecs
import contextlib
import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple, cast

from elastic_core.data.reading.spreadsheets import sheets_as_csv
from elastic_core.errors import InputError
from elastic_core.files import size_text
from elastic_core.text import natural_order, strip_controls

HEAD, MOST_BYTES, SMALL = 4096, 2**30, 2**22  # looked at; read whole at most; below this nothing is called a bomb
GZIP = b"\x1f\x8b"
KINDS = ((b"PAR1", "parquet"), (b"ARROW1", "arrow"), (b"FEA1", "arrow"), (b"\xff\xff\xff\xff", "arrow"))
AS_CSV = "save the table as CSV"
REFUSED = (
    (
        rb"7z\xbc\xaf|Rar!|BZh|\xfd7zXZ|\x28\xb5\x2f\xfd",
        "an archive of a kind that is not read here",
        "unpack it, and give the table inside",
    ),
    (rb"SQLite format 3", "an SQLite database", "export the table: sqlite3 -header -csv FILE 'select * from TABLE' > table.csv"),
    (rb"\x80[\x02-\x05]", "a Python pickle, which is never opened", AS_CSV),
    (rb"\x93NUMPY", "a NumPy array", AS_CSV),
    (rb"\x89HDF|CDF[\x01\x02]", "an HDF5 or NetCDF file", AS_CSV),
    (rb"%PDF|\x89PNG|\xff\xd8\xff|GIF8|\{\\rtf", "a document or picture", AS_CSV),
    (rb"\xd0\xcf\x11\xe0", "an old Excel workbook (.xls)", "save the sheet as .xlsx or CSV"),
    (rb"-- (MySQL|PostgreSQL|SQLite)", "an SQL dump", "load it into its database and export the table as CSV"),
    (rb"version https://git-lfs", "a pointer of Git LFS", "fetch the file itself: git lfs pull"),
    (rb".{257}ustar", "a tar archive", "unpack it (tar -xf FILE), and give the folder or the table inside"),
    (rb"ORC", "an ORC file", "save the table as Parquet or CSV"),
    (rb"Obj\x01", "an Avro file", "save the table as Parquet or CSV"),
    (rb"RD[XA][0-9]|\$FL[23]|<stata_dta|\x00{8}.{60,80}SAS", "a file of R, SPSS, Stata or SAS", AS_CSV),
    (rb"\s*<(!doctype|html|\?xml)", "a web page or XML, perhaps an error page in place of the download", "get the table itself"),
)
OUTSIDE = re.compile(r"^[\\/]|^[A-Za-z]:|(^|[\\/])\.\.([\\/]|$)")


@dataclass(frozen=True)
class Limits:
    """What a source may hold: bytes unpacked, times larger than packed, rows, columns. None: as much as there is."""

    unpacked: int | None = None
    ratio: int | None = None
    rows: int = 2**28
    columns: int = 2_000
    files: int = 100_000


NO_LIMITS = Limits()


class IncompleteFile(InputError):
    """A file or an archive that is torn: what is left of it is never read."""


class IncompletePart(IncompleteFile):
    """One of several files that is torn: the others can be read without it. `fault` says so without the command line's words."""

    def __init__(self, fault: InputError | str) -> None:
        super().__init__(f"{fault}, or read the other files without it (--incomplete skip)")
        self.fault = str(fault)


class Upload(NamedTuple):
    """A file that was sent: its name is only shown, never used as a path."""

    name: str
    data: bytes


Source = Path | Upload
Opener = Callable[[], contextlib.AbstractContextManager[IO[bytes]]]


class Member(NamedTuple):
    """One file that can be opened. `name` has the folders it lies in and no ending of a packing; `label` is for sentences."""

    name: str
    label: str
    opener: Opener
    packed: int  # bytes that it takes as it lies, for the ratio
    limits: Limits
    kind: str = ""  # text, sheet, parquet or arrow; "other" for what is no table, "torn" for what is not complete

    @property
    def base(self) -> str:
        return PurePosixPath(self.name).name

    @contextlib.contextmanager
    def open(self) -> Iterator["GuardedFile"]:
        with contextlib.ExitStack() as stack:
            with explain_damage(self.label):
                file = stack.enter_context(self.opener())
            yield GuardedFile(file, self)

    def read(self, most: int = MOST_BYTES) -> bytes:
        """Return all bytes. Raises InputError for a damaged member, and for one that is larger than `most`."""
        with self.open() as file:
            data = file.read(most + 1)
        if len(data) > most:
            raise InputError(f"{self.label} holds more than {size_text(most)} when unpacked, which are read at most")
        return data

    def check(self, unpacked: int, packed: int) -> None:
        """Raises InputError if `packed` bytes become too many, or many more than a real table's would."""
        if self.limits.unpacked is not None and unpacked > self.limits.unpacked:
            raise InputError(f"{self.label} would unpack to more than {size_text(self.limits.unpacked)}, which is the limit")
        if self.limits.ratio is not None and unpacked > max(SMALL, self.limits.ratio * packed):
            raise InputError(f"{self.label} would grow more than {self.limits.ratio} times when unpacked, as no real table does")


class GuardedFile:
    """A stream whose damage is said in a sentence, and which never gives more than the limits allow."""

    def __init__(self, file: IO[bytes], member: Member) -> None:
        self.file, self.member, self.bytes_read = file, member, 0

    def read(self, count: int) -> bytes:
        """Return `count` bytes, fewer at the end only."""
        pieces, remaining = list[bytes](), count
        with explain_damage(self.member.label):
            while remaining and (piece := self.file.read(min(remaining, 4 * SMALL))):
                pieces.append(piece)
                remaining -= len(piece)
                self.bytes_read += len(piece)
                self.member.check(self.bytes_read, self.member.packed)
        return b"".join(pieces) if len(pieces) != 1 else pieces[0]


def refuse_large(rows: int, columns: int, source: Any) -> None:
    """Raises InputError where the table of a member or a sheet has more than may be read."""
    for count, what, most in ((rows, "rows", source.limits.rows), (columns, "columns", source.limits.columns)):
        if count > most:
            raise InputError(f"{source.label} has {count:,} {what}; at most {most:,} are read")


def list_members(source: Source, limits: Limits = NO_LIMITS) -> list[Member]:
    """Return the files of a source in the natural order of their names. Raises InputError when there is nothing to read."""
    if isinstance(source, Upload):
        label = display_name(source.name)
        return list(_expand(Member(label, label, lambda: io.BytesIO(source.data), len(source.data), limits)))
    try:
        if source.is_file():
            return list(_expand(_describe_file(source, source.name, limits)))
        if not source.is_dir():
            raise InputError(f"there is no file or folder {str(source)!r}")
        paths = {path.relative_to(source).as_posix(): path for path in source.rglob("*") if path.is_file()}
        names = order_names([name for name in paths if not _is_hidden(name)])
        return list(_expand_each([_describe_file(paths[name], name, limits) for name in names]))
    except OSError as error:
        raise InputError(f"{str(source)!r} cannot be read: {error.strerror or error}") from None


def list_neighbours(path: Path) -> list[Member]:
    """Return the files of the folder that a file lies in, among which may be its titles."""
    with contextlib.suppress(OSError):
        near = [one for one in sorted(path.parent.iterdir()) if one.is_file() and one != path]
        return [_describe_file(one, one.name, NO_LIMITS)._replace(kind="text") for one in near]
    return []


def display_name(name: str) -> str:
    """Return a file's own name without folders, control characters and reading-direction marks; at most sixty characters."""
    return strip_controls(re.split(r"[\\/]", name)[-1]).strip(" .")[:60] or "file"


def order_names(names: list[str]) -> list[str]:
    """Return names in natural order, what is for training before what is for validation and test."""
    stage = {"valid": 1, "val": 1, "dev": 1, "test": 2}
    ordered = [names[at] for at in natural_order(names)]
    return sorted(ordered, key=lambda name: max(stage.get(word, 0) for word in re.split(r"[^a-z]+", name.lower())))


def _describe_file(path: Path, name: str, limits: Limits) -> Member:
    return Member(name, path.name, lambda: path.open("rb"), path.stat().st_size, limits)


def _is_hidden(name: str) -> bool:
    return any(part.startswith((".", "_")) for part in PurePosixPath(name).parts)


def _expand(member: Member, depth: int = 0, strict: bool = True) -> Iterator[Member]:
    """Yield the tables inside: what is packed is unpacked, and an archive's files one by one."""
    with member.open() as file:
        head = file.read(HEAD).removeprefix(codecs.BOM_UTF8)
    if head.startswith(GZIP):
        if depth > 2:
            raise InputError(f"{member.label} is packed more than twice: pack the table itself, once")
        inner = re.sub(r"(?i)\.(gz|gzip)$", "", member.name)
        yield from _expand(member._replace(name=inner, opener=partial(_open_gzip, member.opener)), depth + 1, strict)
    elif head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        yield from _expand_zip(member)
    elif refused := next((row for row in REFUSED if re.match(row[0], head, re.IGNORECASE | re.DOTALL)), None):
        if strict:
            raise InputError(f"{member.label} is {refused[1]}: {refused[2]}")
        yield member._replace(kind="other")
    else:
        yield member._replace(kind=next((kind for magic, kind in KINDS if head.startswith(magic)), "text"))


@contextlib.contextmanager
def _open_gzip(opener: Opener) -> Iterator[IO[bytes]]:
    with opener() as file, gzip.GzipFile(fileobj=file, mode="rb") as inside:
        yield cast(IO[bytes], inside)


@contextlib.contextmanager
def _open_zipped(opener: Opener, name: str) -> Iterator[IO[bytes]]:
    with opener() as file, zipfile.ZipFile(file) as archive, archive.open(name) as inside:
        yield inside


def _expand_zip(member: Member) -> Iterator[Member]:
    with explain_damage(member.label), member.opener() as file, zipfile.ZipFile(file) as archive:
        infos = {info.filename: info for info in archive.infolist() if not info.is_dir()}
    names = list(infos)
    if "[Content_Types].xml" in names and any(name.startswith("xl/") for name in names):
        yield from _expand_sheets(member)
        return
    member.check(sum(info.file_size for info in infos.values()), member.packed)
    for bad, what in (
        ("[Content_Types].xml" in names, f"is an office document: {AS_CSV}"),
        (names[:1] == ["mimetype"], "is an OpenDocument file: save the sheet as .xlsx or CSV"),
        (bool(names) and all(name.endswith(".npy") for name in names), f"is a NumPy archive: {AS_CSV}"),
        (any(info.flag_bits & 1 for info in infos.values()), "is protected by a password: pack it without one"),
        (":" in member.label, "holds another archive: pack the table itself, once"),
        (len(names) > member.limits.files, f"holds {len(names):,} files; at most {member.limits.files:,} are looked at"),
        # none is ever written to disk; a name that leads out of an archive was meant to be
        (
            any(OUTSIDE.search(name) for name in names),
            "holds a file whose name points outside the archive: pack the table itself",
        ),
    ):
        if bad:
            raise InputError(f"{member.label} {what}")
    inside = list[Member]()
    for name in order_names([name for name in names if not _is_hidden(name)]):
        label, opener = f"{member.label}:{display_name(name)}", partial(_open_zipped, member.opener, name)
        inside.append(Member(name, label, opener, max(infos[name].compress_size, 1), member.limits))
    yield from _expand(inside[0]) if len(inside) == 1 else _expand_each(inside)


def _expand_each(parts: list[Member]) -> Iterator[Member]:
    """Yield the tables of several files; what is no table or not complete keeps its place among them."""
    for part in parts:
        try:
            yield from list(_expand(part, strict=False))
        except IncompleteFile:
            yield part._replace(kind="torn")


def _expand_sheets(member: Member) -> Iterator[Member]:
    """Yield the sheets of a workbook as members of their own."""
    data = member.read()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        member.check(sum(info.file_size for info in archive.infolist()), len(data))
    try:
        texts = sheets_as_csv(data, member.limits.rows, member.limits.columns)
    except Exception:  # what the library raises of torn files is of every kind
        raise IncompleteFile(f"{member.label} is not a complete Excel file: write it again, or {AS_CSV}") from None
    for title, text in texts.items():
        sheet = member._replace(opener=partial(io.BytesIO, text), kind="sheet")
        if len(texts) > 1:
            sheet = sheet._replace(name=f"{member.name}/{title}", label=f"{member.label}:{display_name(title)}")
        yield sheet


@contextlib.contextmanager
def explain_damage(label: str) -> Iterator[None]:
    """Turn what the unpackers raise into one sentence."""
    try:
        yield
    except InputError:
        raise
    except RuntimeError as error:  # a password, another way of packing (NotImplementedError)
        raise InputError(f"{label} cannot be unpacked: {error}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise InputError(f"{label} cannot be read: {error.strerror or error}") from None
        raise IncompleteFile(f"{label} is not a complete archive: download or pack it again") from None
