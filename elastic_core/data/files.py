"""Bytes as they lie on disk: a plain file, a .gz, a .zip or a folder, each seen as named members.

`Bundle` hides which of the four it is, so that a reader asks for `ratings.dat` and gets its bytes.
"""

import contextlib
import gzip
import hashlib
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from elastic_core.disk import size
from elastic_core.errors import InputError

MOST_BYTES, PIECE = 2**30, 2**22  # of one member, unpacked: MovieLens-32M has 0.9 GB; and what is unpacked at a time


@dataclass(frozen=True)
class Bundle:
    """The files that can be read from `path`. `main` is the member that was named, when one file was."""

    path: Path
    members: dict[str, str]  # base name without .gz -> where it lies (a path, or a name inside the zip)
    main: str | None
    zipped: bool

    def read(self, name: str) -> bytes:
        """The unpacked bytes of one member. Raises InputError for a damaged or unreadable one, and for one that is too large."""
        with self.open(name) as file:
            return _bounded(file, Path(self.members[name]).name + (f" in {self.path.name}" if self.zipped else ""))

    @contextlib.contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """The same bytes, to be read a part at a time, as many as there are. Raises InputError as `read`, whenever it shows."""
        where = self.members[name]
        packed, shown = where.endswith(".gz"), Path(where).name
        try:
            with contextlib.ExitStack() as held:
                opened = self._unzipped(where, held) if self.zipped else Path(where).open("rb")  # noqa: SIM115 (held, next line)
                file = held.enter_context(opened)
                yield cast(IO[bytes], held.enter_context(gzip.GzipFile(fileobj=file))) if packed else file
        except InputError:
            raise
        except (zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError) as error:
            if packed and not isinstance(error, zipfile.BadZipFile):
                raise InputError(f"{shown} is not a complete gzip file: download or pack it again") from None
            raise InputError(f"{shown} in {self.path.name} is damaged: download or pack the zip file again") from None
        except OSError as error:
            raise InputError(f"{shown} cannot be read: {error.strerror or error}") from None

    def _unzipped(self, where: str, held: contextlib.ExitStack) -> IO[bytes]:
        try:
            return held.enter_context(zipfile.ZipFile(self.path)).open(where)
        except (RuntimeError, NotImplementedError) as error:  # a password, another way of packing
            raise InputError(f"{where} in {self.path.name} cannot be unpacked: {error}") from None

    def describe(self, name: str) -> str:
        """How messages call a member: the file's own name, with the zip it lies in."""
        return f"{self.path.name}:{self.members[name]}" if self.zipped else Path(self.members[name]).name


def open_bundle(path: Path) -> Bundle:
    """Look at `path` without reading the data. Raises InputError when there is nothing to read."""
    try:
        if path.is_dir():
            return Bundle(path, _folder(path), None, False)
        if not path.is_file():
            raise InputError(f"there is no file or folder {str(path)!r}")
        if path.suffix.lower() == ".zip":
            with zipfile.ZipFile(path) as archive:
                refuse_outside(archive.namelist(), path.name)
                names = [name for name in archive.namelist() if not name.endswith("/") and not name.startswith("__MACOSX")]
            return Bundle(path, {_base(Path(name).name): name for name in names}, None, True)
        # A file may have its titles beside it: ratings.csv and movies.csv.
        return Bundle(path, {**_folder(path.parent), _base(path.name): str(path)}, _base(path.name), False)
    except zipfile.BadZipFile:
        raise InputError(f"{path.name} is not a complete zip file: download or pack it again") from None
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read: {error.strerror or error}") from None


def blob_id(data: bytes) -> str:
    """git's id of these bytes, by which published files are recognised (`git hash-object`)."""
    digest = hashlib.sha1(b"blob %d\0" % len(data), usedforsecurity=False)
    digest.update(data)
    return digest.hexdigest()


def refuse_outside(names: Iterable[str], shown: str) -> None:
    """Raises InputError if a name inside an archive leads out of it. None is ever written to disk; whoever packed it tried."""
    for name in names:
        parts = re.split(r"[\\/]", name)
        if parts[0] == "" or ".." in parts or re.match(r"[A-Za-z]:", name):
            raise InputError(f"{shown} holds a file whose name points outside the archive: pack the table itself")


def _base(name: str) -> str:
    return name.removesuffix(".gz")


def _folder(path: Path) -> dict[str, str]:
    files = sorted(entry for entry in path.iterdir() if entry.is_file() and not entry.name.startswith("."))
    return {_base(entry.name): str(entry) for entry in files}


def _bounded(file: IO[bytes], name: str) -> bytes:
    """What a file unpacks to, in pieces: it is not asked how much that will be, and more than the bound is never held."""
    out = bytearray()
    while piece := file.read(PIECE):
        out += piece
        if len(out) > MOST_BYTES:
            raise InputError(f"{name} holds more than {size(MOST_BYTES)} when unpacked, which are read at most")
    return bytes(out)
