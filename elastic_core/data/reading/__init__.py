"""Whatever people bring becomes one table of user, item and time: one reader for the command line, uploads and long files."""

from elastic_core.data.reading.reader import Table, read_interactions

__all__ = ["Table", "read_interactions"]
