"""The building blocks, one idea of the paper per file."""
