"""Who may come in where: declared once, walked door by door, told in the reference."""
