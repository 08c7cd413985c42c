"""Databases as documents: one for each table, so that a question finds the table that answers it.

Imports no driver and neither SQLAlchemy nor sqlglot: `reflection` and `ddl` do, when they are used.
"""
