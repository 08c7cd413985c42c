"""Shared by two or more apps; imports no app.

`errors` is the base of all errors, `rls` the row-level security that every request runs under,
`sql` fast reads and COPY, `bm25` and `fusion` the scores of search and memory.
"""
