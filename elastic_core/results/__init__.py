"""What finished runs measured: where it is stored, how runs are compared, and the tables that README and Evidence show.

    from elastic_core import results
    runs = results.load("checkpoints")      # all of them, those whose weights did not come along, too
    results.read_runs("checkpoints")        # the same as a DataFrame, a row a run

reproduce.py        every run behind the tables, as data, and how it is trained again
store.py            finished runs as tables: runs.csv, epochs.csv, ranks
systems.py          what runs are called, and which runs are one system on which data
statistics.py       paired differences with the noise of training, Holm's adjustment, power
compare.py          runs against runs, and who may be called better
table.py            one row a system, protocol and metric; leaderboards and differences
claims.py           the questions of Evidence: yes, no or not known
markdown.py         the tables of README.md and RESULTS.md
baselines.py        what a finished training stands beside: systems that only count, and chance
grid.py             the same few tries for every model; validation chooses
short_histories.py  how well a run knows users of whom it knows little
"""

from elastic_core.results.store import StoredRun, find_run, load, read_epochs, read_runs

__all__ = ["StoredRun", "find_run", "load", "read_epochs", "read_runs"]
