"""Users, workspaces and memberships: who may see what.

Read `models`, then `services` and `authentication`; `audit` records who changed what.
"""
