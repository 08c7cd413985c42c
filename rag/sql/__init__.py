"""Questions about databases catalogued on this site: tables are found, and SQL is written and, by
`documents.sql`, checked.

No SQL is ever run: the site knows what tables look like, and has no connection to their databases.
Import this lazily: sqlglot is slow to load, and most processes never need it.
"""
