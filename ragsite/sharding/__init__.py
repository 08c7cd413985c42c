"""Laying the tables out over several servers by workspace, with Citus."""
