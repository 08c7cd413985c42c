"""The project package: settings, URLs, operations.

Read `settings`; `bootstrap` is what `manage.py` runs, `embedded` the servers of `make run`,
`supervisor` the processes of a site, `backup` and `health` its operation.
"""
