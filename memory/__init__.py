"""What an assistant remembers of its user: context and facts (built by a later issue)."""
