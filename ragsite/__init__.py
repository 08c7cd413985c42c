"""The project: wiring only."""
