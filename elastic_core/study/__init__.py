"""A study of somebody's own clicks: does a long history pay there, do experts of one's own, and what is worth running?

plan.py      what is trained, for how long each
conduct.py   reading, counting, training, measuring: every step's result is a file, so a killed study goes on
side.py      one way of holding out: its runs, and what is known of them
asking.py    what is measured of a trained run besides its ranks
verdicts.py  what may be claimed of all that is asked together
answers.py   the sections of the answer: sentences, each with its interval, tables, pictures
sheet.py     the answer as one page of HTML that needs nothing else
"""
