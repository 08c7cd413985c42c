"""Pictures of figures, drawn by the server: geometry without Django, and what each one shows."""
