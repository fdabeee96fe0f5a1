"""What may help where a model raises an error, told from what the error says."""

from __future__ import annotations

OF_ROWS = "it is given many points at once; around a function of one row put lambda a: [function(row) for row in a]"

OF_TENSORS = (
    "a function is given NumPy arrays; give the torch module itself, which brings its gradients, or convert first:"
    " lambda a: model(torch.as_tensor(a, dtype=torch.float32))"
)

OF_INPUTS = "inputs beside the first are held: as_model(model, held={name: a line for each row})"

WITHOUT_GRADIENTS = "method='clime' needs only predictions"

OF_ARRAYS = "a model is given many points at once, as an array (n, d)"

KNOWN: list[tuple[type[BaseException], tuple[str, ...], str]] = [
    (TypeError, ("required positional argument",), OF_INPUTS),
    (Exception, ("Tensor", "numpy.ndarray"), OF_TENSORS),
    (RuntimeError, ("numpy() on Tensor that requires grad",), WITHOUT_GRADIENTS),
    (TypeError, ("arrays can be converted to Python scalars",), OF_ROWS),
    (ValueError, ("truth value of an array",), OF_ROWS),
]
"""Class of an error, what its message holds, and what may help."""

GUESSES: list[tuple[type[BaseException], tuple[str, ...], str]] = [
    (IndexError, ("",), OF_ARRAYS),
    (AttributeError, ("'numpy.ndarray' object has no attribute",), OF_ARRAYS),
]
"""The same, where the model itself says nothing that may help."""


def hint_about(err: BaseException, own: str) -> str:
    """What may help, in brackets: by what the error says, by what the model says of itself, or a guess; or nothing."""
    return _told(err, KNOWN) or own or _told(err, GUESSES)


def _told(err: BaseException, hints: list[tuple[type[BaseException], tuple[str, ...], str]]) -> str:
    said = str(err)
    found = (hint for kind, words, hint in hints if isinstance(err, kind) and all(word in said for word in words))
    hint = next(found, "")
    return f" ({hint})" if hint else ""
