"""Tests of the pages, a module a subject."""
