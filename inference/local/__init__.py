"""Running a model in this process, for the local backends. Imports neither Django nor Celery."""
