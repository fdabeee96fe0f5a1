"""Files that hold models: recognised by their first bytes, and read without running what is in them."""

from .read import is_onnx_file, read_model

__all__ = ["is_onnx_file", "read_model"]
