"""A trained run as a service over HTTP.

app.py      addresses, what is asked and answered, limits, metrics (FastAPI)
desk.py     requests that wait together are answered together, by one thread
answers.py  what is answered: lists after histories and for people, who are followed event by event
events.py   what people did, in SQLite: nothing that was acknowledged is lost
"""
