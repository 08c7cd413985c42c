"""The search page and its parts: start, results, saved searches, similar, judging."""
