"""Connections to model servers, made while the site runs: by page, API, admin and command.

Begin with `models`, then `services` (connect, change, try, remove) and `registry`, by which
`inference` finds the connected models in every process.
"""
