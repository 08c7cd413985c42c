"""Every page of the site in every state: one module an area, looked at by test_browser_matrix."""
