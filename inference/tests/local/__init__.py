"""Tests of models that run in this process: PyTorch is loaded to collect them."""
