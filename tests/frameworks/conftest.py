"""Tests in an environment of their own: `make test-frameworks` makes it. What all tests share is in ../conftest.py."""

import os

os.environ.setdefault("KERAS_BACKEND", "jax")  # before Keras is imported; the Makefile names each in turn
