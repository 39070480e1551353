"""The item table as codes (LISA's Table 2): the bytes of a file that holds them, and the same table back from it.

    plain 4·n·d     codes ⌈n·b·⌈log2 w⌉ / 8⌉ and codebooks 4·b·w·d, for every set of codebooks    (n items, b books of w words)

Words are added up in the order in which they were found, so what comes back is the model's table, number by number.
"""

import math
from dataclasses import dataclass

import numpy as np
import safetensors
import torch
from safetensors.torch import load, save
from torch import Tensor

from elastic_core.errors import InputError
from elastic_core.models import Recommender
from elastic_core.peers.lisa import Lisa
from elastic_core.peers.parts.codebooks import Codebooks, decode


@dataclass(frozen=True)
class Compressed:
    """Files in safetensors format. If histories have codebooks of their own, those and their codes are in as well."""

    plain: int  # bytes of a file that holds the item table itself, float32
    packed: bytes  # codes of ⌈log2 w⌉ bits each
    aligned: bytes  # codes of one or two bytes each

    @property
    def ratio(self) -> float:
        """How many times smaller the packed file is than the plain one."""
        return self.plain / len(self.packed)


def needed(items: int, width: int, books: int, words: int) -> float:
    """Bytes of one set of codebooks with the codes of all items, by the formula (without the heads of files)."""
    return items * books * bits_of(words) / 8 + 4 * books * words * width


def compress(model: Recommender) -> Compressed:
    """Of a LISA that scores items by codes. Raises InputError for every other: it scores them by a plain table."""
    if not isinstance(model, Lisa) or model.target_codebooks is None:
        raise InputError(f"{model.config.name} in this configuration scores items by a plain table, which has no codes")
    sets: dict[str, Codebooks] = {"items": model.target_codebooks}
    if model.target_codebooks is not model.codebooks:
        sets["histories"] = model.codebooks
    packed = {"n_items": torch.tensor(model.n_items)}
    aligned = dict(packed)
    for name, books in sets.items():
        codes, words = model.item_codes(books).cpu().numpy(), books.words.detach().cpu()
        most = words.shape[1]
        packed[f"{name}.codes"] = torch.from_numpy(pack(codes, bits_of(most)))
        aligned[f"{name}.codes"] = torch.from_numpy(codes.astype(np.uint8 if most <= 256 else np.uint16))
        packed[f"{name}.words"] = aligned[f"{name}.words"] = words
    return Compressed(len(save({"items": model.scorer().table.detach().cpu()})), save(packed), save(aligned))


def restore(file: bytes) -> Tensor:
    """The item table `[n_items + 1, d]` of the scorer from either file. Raises InputError if it is none, or was cut short."""
    try:
        found = load(file)
        words, codes, n = found["items.words"].float(), found["items.codes"].numpy(), int(found["n_items"])
        if codes.ndim == 1:
            codes = unpack(codes, bits_of(words.shape[1]), n * words.shape[0]).reshape(n, -1)
        table = decode(torch.from_numpy(codes.astype(np.int64)), words) / math.sqrt(words.shape[-1])
    except (safetensors.SafetensorError, KeyError, ValueError, IndexError, RuntimeError) as error:
        raise InputError(f"this is no file of codes and codebooks ({' '.join(str(error).split())[:100]})") from None
    return torch.nn.functional.pad(table, (0, 0, 1, 0))


def bits_of(words: int) -> int:
    """Bits that tell so many words apart."""
    return max(words - 1, 0).bit_length()


def pack(codes: np.ndarray, bits: int) -> np.ndarray:
    """Codes `[…]` below 2^bits as a stream of bits, row by row, the highest bit first: uint8 `[⌈codes · bits / 8⌉]`."""
    places = np.arange(bits - 1, -1, -1)
    return np.packbits((codes.reshape(-1, 1) >> places & 1).astype(np.uint8))


def unpack(stream: np.ndarray, bits: int, count: int) -> np.ndarray:
    """The inverse of `pack`: int64 `[count]`."""
    flags = np.unpackbits(stream, count=count * bits).reshape(count, bits).astype(np.int64)
    return flags @ (1 << np.arange(bits - 1, -1, -1))
