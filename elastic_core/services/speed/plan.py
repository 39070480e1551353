"""What a measurement of speed is to do."""

from dataclasses import dataclass

from elastic_core.bench.latency import SYSTEMS, Setting, all_systems
from elastic_core.errors import InputError

MOST = 100_000  # a number of a plan beyond this is none
MOST_BYTES = 1.5e9  # of score matrices that eager attention may materialise


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to measure. `histories` are read at a time; `repeats` rounds of all systems in turn."""

    lengths: tuple[int, ...] = (64, 128, 256, 512, 1024, 2048)
    systems: tuple[str, ...] = SYSTEMS
    histories: int = 8
    threads: int = 1
    repeats: int = 7
    k: int = 8
    n_subkeys: int = 16
    width: int = 64

    def __post_init__(self) -> None:
        counts = (*self.lengths, self.histories, self.threads, self.repeats, self.k, self.n_subkeys, self.width)
        if not all(type(n) is int and n < MOST for n in counts) or not all(isinstance(name, str) for name in self.systems):
            raise InputError("a measurement is described by names of systems and whole numbers")
        if not self.lengths or not all(2 <= n <= 65_536 for n in self.lengths):
            raise InputError("choose at least one length between 2 and 65,536")
        if not self.systems or set(self.systems) - set(all_systems()):
            raise InputError(f"choose systems among {', '.join(all_systems())}")
        if min(self.histories, self.threads, self.repeats, self.k) < 1 or self.n_subkeys < 2 or self.k > self.n_subkeys**2:
            raise InputError("histories, threads, repeats and k must be at least 1, √K at least 2, and k at most K")

    def setting(self, length: int) -> Setting:
        return Setting(length=length, batch=self.histories, k=self.k, n_subkeys=self.n_subkeys, width=self.width)

    def fits(self, system: str, length: int) -> bool:
        """Eager attention is left out where its score matrices would fill the machine."""
        return system != "sasrec-eager" or self.setting(length).score_matrix_bytes() <= MOST_BYTES

    def systems_at(self, length: int) -> tuple[str, ...]:
        return tuple(name for name in self.systems if self.fits(name, length))

    def left_out(self) -> tuple[int, ...]:
        """Lengths that eager attention does not get."""
        return tuple(n for n in self.lengths if "sasrec-eager" in self.systems and not self.fits("sasrec-eager", n))

    def steps(self) -> int:
        """One a length for the pass, one a length for the new event."""
        return 2 * len(self.lengths)
