"""Questions of databases that are catalogued here: tables are found, SQL is written and checked
against them.

No SQL is ever run: the site knows what tables look like, and has no connection to their database.
Import it where it is needed: with sqlglot that takes a moment, and most processes never do.
"""
