"""The documentation in docs/, served by the site under /docs/."""
