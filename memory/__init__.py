"""Memory: what an assistant knows of its user, as contexts (turns) and facts.

Read `models`, `services`, then `retrieval` and `ranking` (finding) and `extraction` (learning).
"""
