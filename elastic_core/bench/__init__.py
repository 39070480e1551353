"""Timing and memory of models in one process, interleaved; results are rows of a CSV."""
