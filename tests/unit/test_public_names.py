import inspect
import subprocess
import sys

import smoothlime as sl
from smoothlime import errors


def test_public_names_exist_and_are_documented():
    for name in sl.__all__:
        thing = getattr(sl, name)
        assert name == "__version__" or inspect.getdoc(thing), name


def test_signature_of_explain_is_keyword_only_after_model_and_rows():
    kinds = {name: each.kind for name, each in inspect.signature(sl.explain).parameters.items()}
    assert [name for name, kind in kinds.items() if kind is not inspect.Parameter.KEYWORD_ONLY] == ["model", "X"]


def test_import_loads_numpy_and_nothing_heavier():
    heavy = ["scipy", "torch", "sklearn", "pandas", "polars", "matplotlib", "narwhals", "click", "rich"]
    code = f"import sys, smoothlime; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_error_is_ours_and_the_builtin_it_resembles():
    for _, kind in inspect.getmembers(errors, inspect.isclass):
        if issubclass(kind, Warning):
            assert issubclass(kind, errors.SmoothlimeWarning)
        elif kind is not errors.SmoothlimeError:
            assert issubclass(kind, errors.SmoothlimeError)
            assert issubclass(kind, ValueError | TypeError | RuntimeError | ImportError | ArithmeticError | OSError)
        assert kind.__name__ in errors.__doc__
