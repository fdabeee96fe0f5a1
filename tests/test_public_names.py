import inspect
import re
import subprocess
import sys
from pathlib import Path

import smoothlime as sl
from smoothlime import errors


def test_public_names_exist_and_are_documented():
    for name in sl.__all__:
        thing = getattr(sl, name)
        assert name == "__version__" or inspect.getdoc(thing), name


def test_public_names_stand_in_the_reference():
    page = (Path(__file__).parents[1] / "docs" / "reference.md").read_text()
    listed = set(re.findall(r"^\.\. auto\w+:: (?:smoothlime\.)?(\w+)$", page, flags=re.MULTILINE))
    assert listed == set(sl.__all__) - {"__version__"}


def test_signature_of_explain_is_keyword_only_after_model_and_rows():
    kinds = {name: each.kind for name, each in inspect.signature(sl.explain).parameters.items()}
    assert [name for name, kind in kinds.items() if kind is not inspect.Parameter.KEYWORD_ONLY] == ["model", "X"]


def test_signature_of_sigma_path_is_that_of_explain_for_one_row_and_a_fixed_number_of_draws():
    one, several = (inspect.signature(each).parameters for each in (sl.explain, sl.sigma_path))
    positional = [name for name, each in several.items() if each.kind is not inspect.Parameter.KEYWORD_ONLY]
    assert positional == ["model", "x", "sigmas"]
    both = set(several) & set(one)
    assert set(several) - both == {"x", "sigmas", "neighbourhood"}
    assert [several[name].default for name in both - {"n_samples"}] == [
        one[name].default for name in both - {"n_samples"}
    ]


def test_dir_shows_public_names_only():
    assert {name for name in dir(sl) if not name.startswith("__")} == set(sl.__all__) - {"__version__"}
    assert {"__all__", "__doc__", "__file__", "__name__", "__path__", "__version__"} <= set(dir(sl))


def test_rooms_can_be_imported_all_the_same():
    code = "import smoothlime.sampling.loop; from smoothlime import explain, io, plots; assert callable(explain)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_import_loads_numpy_and_nothing_heavier():
    heavy = [
        "scipy",
        "torch",
        "sklearn",
        "pandas",
        "polars",
        "matplotlib",
        "narwhals",
        "pyarrow",
        "shap",
        "click",
        "rich",
        "tqdm",
    ]
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
