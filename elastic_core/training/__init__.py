"""Learning: one step, the loop over epochs, and what is written down."""

from elastic_core.training.loop import train

__all__ = ["train"]
