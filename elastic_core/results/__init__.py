"""What finished runs measured: where it is stored, how runs are compared, and the tables that README and Evidence show.

    from elastic_core import results
    runs = results.load("checkpoints")      # all of them, those whose weights did not come along, too
    results.read_runs("checkpoints")        # the same as a DataFrame, a row a run
"""

from elastic_core.results.store import StoredRun, find_run, load, read_epochs, read_runs

__all__ = ["StoredRun", "find_run", "load", "read_epochs", "read_runs"]
