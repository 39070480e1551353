"""A study of somebody's own clicks: does a long history pay there, do personal experts, and which model is worth running?

request.py       what is studied, and the clock of its budget
plan.py          how long every training may take: successive halving
train.py         the study itself; every step leaves a file, so a killed study goes on
holdout.py       one way of holding events out: its data, its runs, what is known of them
measurements.py  what is measured of a run besides the ranks of its test
questions.py     what may be claimed of everything that is asked together
answer.py        the sections that claim something; background.py: the others; parts.py: their words, tables and charts
page.py          the answer as one page of HTML (page.html)
"""
