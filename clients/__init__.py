"""What programs elsewhere import: the site's search over its API, and LangChain classes over it.
Without Django; nothing of the site imports it.
"""
