"""Pages: logging in and out, API keys."""
