"""Questions about databases catalogued on this site: tables are found, SQL is written and checked.

No SQL is ever run: the site knows what tables look like, and has no connection to their databases.
Import this lazily: sqlglot is slow to load, and most processes never need it.
"""
