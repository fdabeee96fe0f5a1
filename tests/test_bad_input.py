"""Bad input gets its own message: what must hold, what came, what to do."""

import itertools
import warnings

import numpy as np
import pytest
import torch

import smoothlime as sl
from smoothlime import errors

X = np.array([[0.1, 0.2, 0.3], [1.0, -1.0, 0.5]])


def total(a):
    return a.sum(axis=1)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [[1.0, 2.0], [np.nan, np.nan]],
            r"row 1 of X has no value in any of the 2 features that are perturbed: nothing",
        ),
        ([[np.nan, np.nan]] * 3, r"row 0 of X \(and 2 more\) has no value in any of the 2 features"),
        ([[np.nan, np.inf]], r"X must be finite; got inf at row 0, feature 1 \('x1'\) \(1 such value in all\)"),
        (
            [[1.0, np.inf], [-np.inf, 0.0]],
            r"X must be finite; got inf at row 0, feature 1 \('x1'\) \(2 such values in all\)",
        ),
        ([], r"X is empty: it has shape \(1, 0\)"),
        (np.empty((0, 3)), r"X is empty: it has shape \(0, 3\)"),
        (np.zeros((2, 0, 2)), r"X is empty: it has shape \(2, 0, 2\)"),
        (3.0, r"X must be one row \(d,\) or rows \(r, d\); got shape \(\)"),
    ],
)
def test_rows(rows, message):
    with pytest.raises(errors.InvalidArgument, match=message):
        sl.explain(total, rows)


def test_complex_rows():
    with pytest.raises(errors.WrongType, match="X must hold real numbers; got complex ones"):
        sl.explain(total, X + 1j)


def test_sparse_rows():
    from scipy import sparse

    for rows in (sparse.csr_matrix(np.eye(2)), sparse.coo_array(np.eye(2))):
        with pytest.raises(errors.WrongType, match=r"X is a sparse .*; give it in full: X.toarray\(\)"):
            sl.explain(total, rows)
    with pytest.raises(errors.WrongType, match=r"background is a sparse .*: background.toarray\(\)"):
        sl.explain(total, X, background=sparse.csr_matrix(np.eye(3)))


def test_rows_of_words():
    with pytest.raises(errors.WrongType, match="X must hold numbers"):
        sl.explain(total, [["a", "b"]])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [["1", "2"]],
            r"X must hold numbers; got text such as '1'\. Make numbers of it first: np\.asarray\(X, dtype=float\)",
        ),
        (np.array([[1.0, "2"]], dtype=object), r"X must hold numbers; got text such as '2'"),
        (np.array([b"1"]), r"X must hold numbers; got text such as"),
        (np.array(["2020-01-02"], dtype="datetime64[D]"), r"X must hold numbers; got dates such as '2020-01-02'"),
        (np.array([1.0, np.datetime64("2020")], dtype=object), r"X must hold numbers; got dates such as '2020'"),
        (np.array([3], dtype="timedelta64[s]"), r"X must hold numbers; got spans of time such as '3 sec.*: X / np"),
        (np.array([1.0, np.timedelta64(3, "D")], dtype=object), r"X must hold numbers; got spans of time"),
        ([[1, 2], [1]], r"X must have rows of one length; got rows of 2 and of 1 numbers"),
        ([[10**400]], r"X must hold numbers; a list came that cannot be read"),
    ],
)
def test_rows_that_are_no_numbers_are_not_read_as_such(rows, message):
    with pytest.raises(errors.WrongType, match=message):
        sl.explain(total, rows)


@pytest.mark.parametrize("rows", [[True, False], np.array([True, False]), [np.float32(1), 0], np.array([1, 0.0], "O")])
def test_numbers_and_bools_of_every_kind_are_rows(rows):
    np.testing.assert_array_equal(sl.explain(total, rows, n_samples=64).x, [[1.0, 0.0]])


@pytest.mark.parametrize(
    ("sigma", "message"),
    [
        (True, r"sigma must hold numbers; got True"),
        ([True, False, True], r"sigma must hold numbers; got \[True, False, True\]"),
        ("1", r"sigma must hold numbers; got text such as '1'"),
        (["1", "1", "1"], r"sigma must hold numbers; got text such as '1'"),
        (np.array([1, 2, 3], "timedelta64[D]"), r"sigma must hold numbers; got spans of time"),
    ],
)
def test_sigma_that_is_no_number_is_not_read_as_such(sigma, message):
    with pytest.raises(errors.WrongType, match=message):
        sl.explain(total, X, sigma=sigma)


def test_masked_cells_are_missing():
    with pytest.raises(errors.ModelError, match=r"returned \[nan\] at row 0; .* Row 0 has gaps in 'x1'\. If the model"):
        sl.explain(total, np.ma.array([1, 2], mask=[0, 1]))
    seen = np.ma.array([1.0, 2.0], mask=[0, 1])
    e = sl.explain(lambda a: a[:, 0], seen, sigma=sl.Neighbourhood(fixed=[1]), n_samples=64)
    np.testing.assert_array_equal(e.x, [[1.0, np.nan]])
    assert seen.data.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int32"])
def test_tensors_of_every_number_type_are_rows(dtype):
    import torch

    e = sl.explain(total, torch.tensor([1.0, -2.0]).to(getattr(torch, dtype)), n_samples=64)
    np.testing.assert_array_equal(e.x, [[1.0, -2.0]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "shap"}, r"method must be one of 'auto', 'exact', 'smoothgrad'.*got 'shap'"),
        ({"design": "halton"}, r"design must be one of 'auto', 'iid', .*; got 'halton'"),
        ({"output": "logit"}, r"output must be one of 'probability', 'margin'; got 'logit'"),
        ({"method": "stein", "design": "orthogonal"}, r"'stein' cannot use design 'orthogonal'; it can use 'iid'"),
        ({"method": "differences", "design": "iid"}, r"cannot use design 'iid'; it can use only its own; leave design"),
        ({"draws": np.ones(2)}, r"draws must be one of 'shared', 'independent'; got array"),
        ({"draws": "both"}, r"draws must be one of 'shared', 'independent'; got 'both'"),
        ({"n_samples": 0}, r"n_samples must be a whole number >= 1; got 0"),
        ({"seed": -1}, r"seed must be a whole number >= 0; got -1"),
        ({"batch_size": 0}, r"batch_size must be a whole number >= 1; got 0"),
        ({"confidence": 1.0}, r"confidence must lie strictly between 0 and 1; got 1.0"),
        ({"confidence": 95}, r"confidence must lie strictly between 0 and 1; got 95"),
        ({"sigma": -1.0}, r"sigma must be finite and > 0"),
        ({"sigma": [1.0, 1.0]}, r"sigma has 2 entries but the rows have 3 features"),
        ({"sigma": sl.Neighbourhood(), "background": X}, r"give background or a Neighbourhood as sigma, not both"),
        ({"background": [[1.0, 2.0]] * 3}, r"background has 2 columns but the rows have 3 features"),
        ({"progress": "loud"}, r"progress must be 'auto', True, False or a callable"),
    ],
)
def test_arguments(arguments, message):
    with pytest.raises(errors.InvalidArgument, match=message):
        sl.explain(total, X, **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 10.5}, r"n_samples must be a whole number; got 10.5"),
        ({"method": sl.CLime}, r"method must be one of .* or settings such as CLime\(ridge=0.1\)"),
        ({"method": 3}, r"method must be one of"),
        ({"batch_size": "big"}, r"batch_size must be a whole number or 'auto'; got 'big'"),
        ({"batch_size": None}, r"batch_size must be a whole number or 'auto'; got None"),
        ({"batch_size": np.array([8, 8])}, r"batch_size must be a whole number; got array"),
        ({"atol": "x"}, r"atol must be a number or 'auto'; got 'x'"),
        ({"atol": np.full(3, 0.1)}, r"atol must be a number; got array"),
    ],
)
def test_arguments_of_the_wrong_kind(arguments, message):
    with pytest.raises(errors.WrongType, match=message):
        sl.explain(total, X, **arguments)


@pytest.mark.parametrize(
    ("estimator", "drawn", "n", "fewest"),
    [
        ("clime", "iid", 7, 8),
        ("clime", "antithetic", 14, 16),
        ("clime", "orthogonal", 6, 18),
        ("differences", "auto", 6, 12),
        ("smoothgrad", "antithetic", 2, 4),
        ("stein", "iid", 1, 2),
        (sl.Lime(kernel=None), "iid", 7, 8),
        (sl.Lime(kernel=2.0), "iid", 7, 18),
        ("lime", "antithetic", 14, 42),
    ],
)
def test_too_few_draws_name_the_fewest(estimator, drawn, n, fewest):
    model = sl.from_functions(values=total, gradients=np.ones_like)
    with pytest.raises(errors.TooFewDraws, match=rf"n_samples={n} is too few .* at least {fewest} are needed"):
        sl.explain(model, X, method=estimator, design=drawn, n_samples=n)
    e = sl.explain(model, X, method=estimator, design=drawn, n_samples=fewest)
    assert np.isfinite(e.standard_error).all()


def test_a_singular_fit_names_the_way_out():
    """Draws that do not span the features: not reachable with the fewest draws that `explain` insists on."""
    from smoothlime.draws.designs import DESIGNS
    from smoothlime.estimators import Batch, GroupedDraws
    from smoothlime.estimators.protocol import Drawn, Setup

    method, factor, design = sl.CLime(), sl.Neighbourhood().factor(3), DESIGNS["iid"]
    z = np.random.default_rng(0).standard_normal((1, 4, 2, 1)) * [1.0, 2.0, -1.0]  # all along one line
    draws = GroupedDraws(z, is_shared=True)
    state = method.start(Setup(1, 4, factor, design, looks=(8,), is_shared=True))
    method.update(state, slice(0, 1), slice(0, 4), Batch(draws, z.sum(axis=3)))
    method.update_shared(state, slice(0, 4), draws)
    with pytest.raises(errors.SingularFit, match=r"8 draws do not span 3 features\. Raise n_samples, or use method="):
        method.finish(state, Drawn(8, np.full(4, 2.0), factor, design, miss=0.05, targets=1))


@pytest.mark.parametrize("method", [sl.CLime, sl.Lime])
def test_a_negative_penalty_is_refused(method):
    for ridge in (-1, np.nan, 10**400):
        shown = str(ridge)[:77]  # messages quote no more
        with pytest.raises(errors.InvalidArgument, match=rf"ridge must be finite and >= 0; got {shown}"):
            method(ridge=ridge)


@pytest.mark.parametrize("wrong", [None, "1", True, 1j, np.complex128(1), np.ones(2), [0.1]], ids=repr)
@pytest.mark.parametrize(
    ("method", "setting"), [(sl.CLime, "ridge"), (sl.Lime, "ridge"), (sl.Lime, "lasso"), (sl.Lime, "features"),
                            (sl.Lime, "kernel"), (sl.Lime, "select"), (sl.CLime, "curves"), (sl.SmoothGrad, "control"),
                            (sl.Differences, "control")]
)  # fmt: skip
def test_settings_of_the_wrong_kind_are_refused_by_name(method, setting, wrong):
    fits = [("features", None), ("kernel", None), ("curves", True)]
    if any(setting == name and wrong is each for name, each in fits):
        assert method(**{setting: wrong})
        return
    with pytest.raises(errors.SmoothlimeError, match=f"^{setting} must be .*; got "):
        method(**{setting: wrong})


class TestModels:
    def test_that_raise(self):
        def broken(a):
            raise KeyError("no such column")

        with pytest.raises(
            errors.ModelError, match="the model raised KeyError on 2 points: 'no such column'"
        ) as caught:
            sl.explain(broken, X)
        assert isinstance(caught.value.__cause__, KeyError)

    def test_that_return_nan_near_a_row(self):
        def log(a):
            with np.errstate(invalid="ignore"):
                return np.log(a[:, 0] + 0.5)

        with pytest.raises(errors.ModelError, match=r"the model returned \[nan\] at a draw around row 0"):
            sl.explain(log, X)

    def test_that_return_nan_at_a_row(self):
        with pytest.raises(errors.ModelError, match=r"the model returned \[inf\] at row 1"):
            sl.explain(lambda a: np.where(a[:, 0] == 1.0, np.inf, 0.0), X)

    def test_with_gradients_that_are_not_finite(self):
        model = sl.from_functions(values=total, gradients=lambda a: np.where(a > 0, 1.0, np.nan))
        with pytest.raises(errors.ModelError, match="gradient is not finite near a draw around row 0"):
            sl.explain(model, X)

    def test_that_return_the_wrong_length(self):
        with pytest.raises(errors.ModelError, match=r"one row of outputs per point.*n = 2, got \(1,\)"):
            sl.explain(lambda a: total(a)[:1], X)

    def test_that_return_too_many_axes(self):
        with pytest.raises(errors.ModelError, match=r"one row of outputs per point"):
            sl.explain(lambda a: np.zeros((len(a), 1, 2)), X)

    def test_that_return_nothing(self):
        with pytest.raises(errors.ModelError, match="the model returned no output"):
            sl.explain(lambda a: np.zeros((len(a), 0)), X)

    def test_that_return_words(self):
        with pytest.raises(errors.ModelError, match="the model must return numbers"):
            sl.explain(lambda a: np.array(["yes"] * len(a)), X)

    @pytest.mark.parametrize(
        ("output", "message"),
        [
            (lambda a: [str(each) for each in a[:, 0]], r"return numbers, as predict_proba.*; got text such as '0.1'"),
            (lambda a: np.array([str(each) for each in a[:, 0]], dtype=object), "got text such as '0.1'"),
            (lambda a: np.datetime64("2020-01-01") + a[:, 0].astype("timedelta64[D]"), "numbers; got dates such as"),
            (lambda a: a[:, 0].astype("timedelta64[s]"), "numbers; got spans of time such as '0 seconds'"),
            (
                lambda a: {"y": a[:, 0]},
                r"the function returned a dict with parts 'y'.*as_model\(model, output_key='y'\)",
            ),
            (lambda a: None, "got a NoneType"),
            (lambda a: (each for each in a[:, 0]), "got a generator"),
        ],
        ids=["digits", "digits as objects", "dates", "spans", "dict", "None", "generator"],
    )
    def test_that_return_no_numbers(self, output, message):
        with pytest.raises(errors.ModelError, match=message):
            sl.explain(output, X)

    def test_what_they_mask_is_missing(self):
        def hidden(a):
            return np.ma.masked_array(a[:, 0], mask=a[:, 0] > 0.5)

        with pytest.raises(errors.ModelError, match=r"the model returned \[nan\] at row 1"):
            sl.explain(hidden, X)
        seen = sl.explain(lambda a: np.ma.masked_array(a[:, 0], mask=False), X, n_samples=64)
        np.testing.assert_allclose(seen.values, [[1.0, 0.0, 0.0]] * 2, atol=1e-9)

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
    def test_tensors_of_every_number_type_are_outputs(self, dtype):
        e = sl.explain(lambda a: torch.tensor(a)[:, :1].to(dtype), X, n_samples=64)
        np.testing.assert_allclose(e.values, [[1.0, 0.0, 0.0]] * 2, atol=0.02)
        model = sl.from_functions(values=total, gradients=lambda a: torch.ones(a.shape, dtype=dtype))
        np.testing.assert_allclose(sl.explain(model, X, n_samples=64).values, 1.0)

    def test_that_return_complex_numbers(self):
        with pytest.raises(errors.ModelError, match="the model must return real numbers; got complex128"):
            sl.explain(lambda a: total(a) + 1j, X)

    def test_whose_width_changes(self):
        widths = itertools.chain([1, 1], itertools.repeat(2))
        with pytest.raises(errors.ModelError, match="returned 1 outputs at first and 2 now"):
            sl.explain(lambda a: np.zeros((len(a), next(widths))), X)

    def test_whose_width_changes_where_gradients_are_asked_for(self):
        class Widening(torch.nn.Module):
            def forward(self, a):
                return a[:, :2] if len(a) < 10 else a

        with pytest.raises(errors.ModelError, match="returned 2 outputs at first and 3 now"):
            sl.explain(Widening(), X, target=0, method="smoothgrad", n_samples=64)

    def test_that_are_random(self):
        rng = np.random.default_rng(0)
        with pytest.raises(errors.NotDeterministic, match="the model gave two answers for row 0"):
            sl.explain(lambda a: total(a) + rng.normal(size=len(a)), X)

    def test_that_are_a_little_random_are_shown_with_the_digits_that_differ(self):
        noise = itertools.count()

        def nearly(a):
            return 0.3 + 1e-11 * next(noise) + 0 * total(a)

        with pytest.raises(errors.NotDeterministic, match=r"for row 0: 0\.3 and then 0\.30000000001\. Switch off"):
            sl.explain(nearly, X)
        with pytest.raises(
            errors.NotDeterministic, match=r"two answers for row 0, output 1: 0\.3\d* and then 0\.3\d*\."
        ):
            sl.explain(lambda a: np.stack([a[:, 0], nearly(a)], axis=1), X, target=0)

    @pytest.mark.parametrize("rows", [1, 2, 40])
    @pytest.mark.parametrize("method", ["clime", "differences"])
    def test_whose_answers_depend_on_the_rest_of_the_batch(self, rows, method):
        x = np.random.default_rng(0).normal(3, 2, size=(rows, 3))

        def standardised(a):
            return total((a - a.mean(axis=0)) / (a.std(axis=0) + 1e-9))

        def ranked(a):
            return 1.0 + a[:, 0].argsort().argsort()

        for model in (standardised, ranked) if rows != 2 else (standardised,):  # a rank may happen to be the same
            with pytest.raises(errors.ModelError, match=r"answer for row 0 depends on what it is asked together with"):
                sl.explain(model, x, method=method, n_samples=64)
        alone = sl.explain(standardised, x, method=method, n_samples=64, batch_size=1)  # it is a function of one point
        np.testing.assert_array_equal(alone.values, 0.0)

    def test_whose_last_digits_depend_on_it_may(self):
        for share in (1e-9, 1e-3):  # float64 or float32, and few digits
            e = sl.explain(lambda a, share=share: total(a) * (1 + share * len(a) / 2**16), X, n_samples=64)
            assert np.isfinite(e.values).all()

    @pytest.mark.parametrize("rows", [1, 2, 5])
    def test_that_are_zero_at_all_rows_have_rounding_instead(self, rows):
        rng = np.random.default_rng(0)
        w, x = rng.normal(size=(2, 37))
        e = sl.explain(lambda a: a @ w - x @ w, np.repeat(x[None], rows, axis=0), n_samples=512)
        np.testing.assert_allclose(e.values, np.repeat(w[None], rows, axis=0))

    def test_that_do_not_bear_all_that_lies_near_are_asked_for_draws_alone(self):
        """Far from x along all features at once, where no draw is, a model may have no answer."""
        e = sl.explain(lambda a: np.log(50 + a.sum(axis=1)), np.zeros(100), n_samples=2_048)
        assert np.isfinite(e.values).all()

    @pytest.mark.parametrize("answer", [np.nan, None], ids=["no number", "an error"])
    def test_that_fail_beside_the_first_row_are_complained_about_only_where_a_draw_leads_there(self, answer):
        def fails_where_no_draw_is(a):
            if len(a) == 3:  # the first row and its probe points
                assert answer is not None
                return np.full(3, answer)
            return total(a)

        e = sl.explain(fails_where_no_draw_is, X, n_samples=64)
        assert e.n_evaluations[0] == e.n_samples[0] + 2 + 3  # they were asked all the same
        np.testing.assert_allclose(e.values, 1.0)

    def test_that_want_several_points_at_once_are_given_several(self):
        def several(a):
            assert len(a) > 1
            return np.squeeze(np.sin(a @ np.ones((3, 1))))

        sl.explain(several, X, n_samples=64)

    def test_that_expect_another_width(self):
        from sklearn.linear_model import LinearRegression

        model = LinearRegression().fit(np.eye(4), np.arange(4.0))
        with pytest.raises(errors.ModelError, match=r"ValueError on 2 points: X has 3 features.*expecting 4"):
            sl.explain(model, X)

    def test_with_too_many_names(self):
        with pytest.raises(errors.InvalidArgument, match="X has 3 features but the model has names for 2"):
            sl.explain(sl.as_model(total, feature_names=["a", "b"]), X)
        with pytest.raises(errors.InvalidArgument, match="feature_names must differ; 'a' stands there 2 times"):
            sl.explain(sl.as_model(total, feature_names=["a", "b", "a"]), X)


class TestMemory:
    def test_batches_are_halved_when_memory_runs_out(self):
        sizes = []

        def hungry(a):
            if len(a) > 100:
                raise MemoryError
            sizes.append(len(a))
            return np.sin(a.sum(axis=1))

        with pytest.warns(errors.SmallerBatches, match="going on with batches of 64 points") as warned:
            e = sl.explain(hungry, X, method="clime", n_samples=512)
        assert len(warned) == 1  # however often they were halved on the way
        assert max(sizes) <= 100
        assert e.provenance.batch_size <= 100
        np.testing.assert_allclose(
            e.values, sl.explain(lambda a: np.sin(a.sum(axis=1)), X, method="clime", n_samples=512).values, rtol=1e-10
        )

    def test_a_model_that_cannot_take_one_point_says_so(self):
        def hopeless(a):
            raise RuntimeError("CUDA out of memory")

        with pytest.raises(errors.ModelError, match="ran out of memory on a single point"):
            sl.explain(hopeless, X)

    def test_many_draws_fit_in_little_memory(self):
        import tracemalloc

        tracemalloc.start()
        sl.explain(lambda a: a[:, 0], np.zeros(64), method="clime", design="iid", n_samples=100_000)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 60e6  # 100,000 draws of 64 features alone would be 51 MB, their points as much again


def test_coarse_numbers_near_a_large_value_are_warned_about():
    import torch

    net = torch.nn.Linear(1, 1)
    with pytest.warns(
        errors.LostPrecision, match=r"sigma is 0.01 for feature 'x0', but the model's numbers are 0.00098 apart"
    ):
        sl.explain(net, [1e4], sigma=0.01)


def test_a_keyboard_interrupt_passes_through():
    calls = itertools.count()

    def interrupted(a):
        if next(calls) > 2:
            raise KeyboardInterrupt
        return total(a)

    with pytest.raises(KeyboardInterrupt):
        sl.explain(interrupted, X, batch_size=64)


def test_steps_below_the_spacing_of_numbers_are_refused():
    """Columns of nanoseconds since 1970 have numbers 256 apart: steps of less get lost between them."""
    with pytest.raises(
        errors.InvalidArgument, match=r"'x0', but the model's numbers are .* steps get lost between them"
    ):
        sl.explain(lambda a: a[:, 0] - 1.7e18, [1.7e18], sigma=100.0)
    with pytest.raises(errors.InvalidArgument, match=r"'x1', but the model's numbers are"):
        sl.explain(lambda a: a[:, 1], [1.0, 1e30], sigma=[1e-5, 1.0])
    with pytest.warns(errors.LostPrecision):
        e = sl.explain(lambda a: a[:, 0] - 1.7e18, [1.7e18], sigma=1e4, n_samples=1_024)
    assert abs(e.values[0, 0] - 1.0) < 0.01


def test_jumps_that_gradients_do_not_see_are_told():
    class Rounds(torch.nn.Module):
        def forward(self, a):
            return torch.round(4 * a).sum(dim=1) / 4

    with pytest.warns(errors.JumpsUnseen, match=r"the gradients of 'output' are 0 around row 0 and 1 more"):
        e = sl.explain(Rounds().eval(), [[0.3, -0.4], [0.1, 0.2]], sigma=0.5, n_samples=256)
    assert "slopes of 0 though the model changes" in str(e)
    with pytest.warns(errors.JumpsUnseen):
        sl.explain_outputs(Rounds().eval(), [[0.3, -0.4]], sigma=0.5, n_samples=256)


class Network(torch.nn.Module):
    """A function of points as a network."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, a):
        return self.function(a)


class WrongSlope(torch.autograd.Function):
    """A sine that says it is half as steep."""

    @staticmethod
    def forward(context, a):
        context.save_for_backward(a)
        return torch.sin(a)

    @staticmethod
    def backward(context, above):
        return above * torch.cos(context.saved_tensors[0]) / 2


LEVELS = torch.tensor([0.5, -1.0, 1.5, 0.0])


@pytest.mark.filterwarnings("ignore::smoothlime.errors.NotConverged")  # and so they do not
@pytest.mark.parametrize("settings", [{}, {"n_samples": 256}, {"draws": "independent"}], ids=str)
@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda a: a.sum(dim=1) + 3 * (a[:, 0] > 0), "the gradients miss the jumps of this model"),
        (lambda a: 0.3 * a[:, 1] + LEVELS[a[:, 0].round().long().clamp(-1, 2) + 1], "the gradient of 'x0' is zero"),
        (lambda a: torch.sin(a[:, 1]) + a[:, 0].detach(), "the gradient of 'x0' is zero although the output follows"),
        (lambda a: WrongSlope.apply(a[:, 0]) + 0 * a[:, 1], "the gradients are "),
    ],
    ids=["a step beside a slope", "levels of a code", "a detached part", "a gradient of its own"],
)
def test_gradients_that_are_no_slopes_are_told(function, reason, settings):
    with pytest.warns(
        errors.JumpsUnseen, match=f"the gradients of 'output' are not its slopes around row 0.*: {reason}"
    ):
        e = sl.explain(Network(function), [[0.1, 0.2], [0.2, 0.1]], sigma=0.8, **settings)
    assert not e.converged.any()
    assert (e.n_samples <= 8_192).all()  # more would not help


def test_features_that_are_not_read_are_not_blamed():
    net = Network(lambda a: 3 * (a[:, 0] > 0) + a[:, 0] * a[:, 1])
    for seed in range(4):
        with pytest.warns(errors.JumpsUnseen, match="around row 0: the gradients miss the jumps of this model"):
            sl.explain(net, np.zeros(12), n_samples=1_024, seed=seed)


def test_outputs_that_lose_the_digits_of_their_difference_do_not_accuse_its_gradients():
    net = Network(lambda a: torch.stack([1e7 + 0.3 * a[:, 0], 1e7 - 0.3 * a[:, 0]], dim=1).float())
    e = sl.explain(net, np.zeros(2), target={0: 1, 1: -1}, n_samples=512)  # warnings are errors
    np.testing.assert_allclose(e.values, [[0.6, 0.0]], rtol=1e-6)


@pytest.mark.filterwarnings("ignore::smoothlime.errors.NotConverged")
def test_gradients_of_the_output_that_is_wrong_are_told():
    net = Network(lambda a: torch.stack([a[:, 0], a[:, 1] + 3 * (a[:, 0] > 0)], dim=1))
    with pytest.warns(errors.JumpsUnseen, match="the gradients of '1' are not its slopes around row 0: "):
        sl.explain_outputs(net, [0.1, 0.2], sigma=0.8)


@pytest.mark.parametrize("n", [256, 1_024])
@pytest.mark.parametrize("d", [2, 30])
@pytest.mark.parametrize(
    "function",
    [
        lambda s: torch.sin(20 * s),
        torch.abs,
        lambda s: torch.relu(s - 3),
        lambda s: torch.exp(2.5 * s),
        lambda s: torch.sigmoid(200 * s),
        lambda s: s**3,
    ],
    ids=["waves", "a kink", "a rare kink", "heavy tails", "nearly a step", "a cube"],
)
def test_gradients_that_are_slopes_are_not_complained_about(function, d, n):
    v = torch.arange(1.0, d + 1) / torch.arange(1.0, d + 1).norm()
    x = np.random.default_rng(0).normal(0, 0.5, size=(4, d))
    for seed in range(4):
        sl.explain(Network(lambda a: function(a @ v.to(a.dtype))), x, n_samples=n, seed=seed)  # warnings are errors


def test_a_constant_network_has_no_jumps():
    class Constant(torch.nn.Module):
        def forward(self, a):
            return 0 * a.sum(dim=1) + 0.36

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        e = sl.explain(Constant().eval(), [0.3, -0.4], sigma=0.5)
    assert e.converged.all()
    assert e.n_samples == 4_096
    assert "the model did not change over the draws" in str(e)


@pytest.mark.parametrize("even", [lambda a: (a**2).sum(dim=1), lambda a: torch.cos(a).sum(dim=1)])
def test_slopes_that_cancel_are_no_jumps(even):
    """Pairs of gradients at ±z around a centre of symmetry cancel to the last digit."""

    class Even(torch.nn.Module):
        def forward(self, a):
            return even(a)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        e = sl.explain(Even().eval(), np.zeros((1, 3)), sigma=0.5, method="smoothgrad", n_samples=32)
    assert not e.values.any()


def test_spacing_is_that_of_the_largest_row():
    class Rough(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.one = torch.nn.Parameter(torch.ones(1, dtype=torch.bfloat16))

        def forward(self, a):
            return (a - 250) @ self.one

    with pytest.warns(errors.LostPrecision, match="numbers are 1 apart at row 0"):
        e = sl.explain(Rough().eval(), [[251.0]], sigma=0.97, method="clime", n_samples=4_096)
    assert abs(e.values[0, 0] - 1.0) < 0.02
    with pytest.raises(errors.InvalidArgument, match="apart at row 1: steps get lost"):
        sl.explain(Rough().eval(), [[251.0], [2_000.0]], sigma=0.97, method="clime", n_samples=256)


@pytest.mark.parametrize("method", ["auto", "clime", "differences", "stein", "lime"])
@pytest.mark.parametrize("size", [1e-160, 1e-250, 1e-300, 1e160, 1e300])
def test_outputs_whose_squares_are_no_numbers_are_refused(method, size):
    """They would be said to have no error, and a radius of 0, or one that is no number."""
    with pytest.raises(sl.errors.ModelError, match="Explain a multiple of the output"), np.errstate(all="ignore"):
        sl.explain(lambda a: size * np.tanh(a @ [1.0, 2.0]), [0.1, 0.2], method=method, n_samples=512)


@pytest.mark.parametrize("size", [0.0, 1e-140, 1e140])
def test_outputs_that_are_small_or_large_or_none_are_not(size):
    e = sl.explain(lambda a: size * np.tanh(a @ [1.0, 2.0]), [0.1, 0.2], method="clime", n_samples=512)
    assert (e.radius > 0).all() == (size > 0)
    assert np.isfinite(e.radius).all()
