import numpy as np
import pytest

import smoothlime as sl
from smoothlime import errors

X = np.random.default_rng(0).normal(size=(4, 3))


def f(a):
    return np.column_stack([np.sin(a[:, 0]) + a[:, 1] * a[:, 2], a[:, 0]])


def test_it_is_explain_with_settings_kept():
    explainer = sl.Explainer(f, background=X, sigma=0.3, target=0, n_samples=256)
    e, same = explainer(X), sl.explain(f, X, background=X, sigma=0.3, target=0, n_samples=256)
    np.testing.assert_array_equal(e.values, same.values)
    np.testing.assert_array_equal(e.standard_error, same.standard_error)


def test_settings_with_the_rows_count_for_that_call_alone():
    explainer = sl.Explainer(f, sigma=0.3, target=0, n_samples=256)
    np.testing.assert_array_equal(
        explainer(X, sigma=0.1, seed=3).values, sl.explain(f, X, sigma=0.1, target=0, n_samples=256, seed=3).values
    )
    np.testing.assert_array_equal(explainer(X).values, sl.explain(f, X, sigma=0.3, target=0, n_samples=256).values)


def test_what_explain_does_not_know_is_refused_at_once():
    with pytest.raises(TypeError, match="sgima"):
        sl.Explainer(f, sgima=0.3)
    with pytest.raises(TypeError, match="sgima"):
        sl.Explainer(f)(X, sgima=0.3)


def test_it_prints_short():
    import pandas as pd

    shown = repr(sl.Explainer(f, background=pd.DataFrame(X), sigma=0.3, target=None))
    assert shown == "Explainer(function, background=<DataFrame of shape (4, 3)>, sigma=0.3, target=None)"


def test_settings_go_by_name():
    with pytest.raises(
        errors.WrongType, match=r"Explainer takes settings by name; .* Explainer\(model, background=X\)"
    ):
        sl.Explainer(f, X)
