"""Users, workspaces and memberships: who may see what."""
