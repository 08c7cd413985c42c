"""Extraction of facts from what users say: by rules or a chat model, through a queue."""
