"""Running a model in this process, for the local backends. Knows neither Django nor Celery.

`devices`, `pooling` and `encoder` import torch: backends import them when a model is first used.
"""
