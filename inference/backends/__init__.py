"""Model backends, one a file: they import neither Django nor Celery."""
