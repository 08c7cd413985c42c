"""onnxruntime without its reports to its maker: import it from here.

Its wheels report what is run, over HTTPS and through a database in the home directory, unless this
variable is set before they are loaded.
"""

import os

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import onnxruntime

__all__ = ["onnxruntime"]
