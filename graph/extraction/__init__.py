"""From documents to what they mention, and how that hangs together."""
