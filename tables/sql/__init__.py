"""SQL over tables of documents, written by a language model: offered views (`views`), a strict
check (`checker`), a fenced run (`execute`, `role`), and the conversation with the model (`writer`,
where to begin).

Import the modules lazily, but for `results` and `role`: sqlglot is slow to load.
"""
