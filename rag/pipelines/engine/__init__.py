"""The engine that runs a pipeline in threads, without Django. Begin with `executor.run`."""
