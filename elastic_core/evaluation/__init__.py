"""Judging: candidates and protocols, ranks, metrics, and whether A is better than B."""
