"""Django's PostgreSQL with connections that threads take turns with."""
