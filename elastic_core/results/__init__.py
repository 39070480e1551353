"""What was measured, and what may be said of it: every table and claim of README.md, RESULTS.md and Evidence.

reproduce.py        every run behind the tables, as data, and how it is trained again
store.py            finished runs as tables: runs.csv, epochs.csv, ranks
systems.py          what runs are called, and which runs are one system on which data
statistics.py       paired differences with the noise of training, Holm's adjustment, power
compare.py          runs against runs, and who may be called better
table.py            one row a system, protocol and metric; leaderboards and differences
claims.py           the questions of Evidence: yes, no or not known
markdown.py         the tables of README.md and RESULTS.md
baselines.py        what a finished training stands beside: systems that only count, and chance
grid.py             the same few tries for every model, chosen by validation
short_histories.py  how well a run knows users of whom it knows little
"""
