"""A trained run as a service over HTTP.

app.py      addresses, requests and answers, limits (FastAPI)
batcher.py  requests that wait together are answered together, by one thread
service.py  what is answered: lists after histories, and for users whose events are kept
events.py   the events of users, in SQLite: nothing that was acknowledged is lost
"""
