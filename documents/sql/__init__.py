"""SQL that a language model wrote, read and checked by name: one statement, read only, every table
and column known. Begin with `checker.check_sql`, or with `checker.parse_select` and
`resolver.QueryChecker`. Runs nothing.

Import this lazily: sqlglot is slow to load, and most processes never need it.
"""
