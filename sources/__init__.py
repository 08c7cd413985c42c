"""Sources: folders, buckets, mailboxes, repositories and sites that keep collections up to date.

Read `connectors/base.py` first: what a connector lists and fetches. `synchronisation.py` is one
run: it lists, compares, fetches what changed and deletes what is certainly gone, the same for every
connector. `services.py` is what doors call, `tasks.py` the schedule, `credentials.py` the secrets.
"""
