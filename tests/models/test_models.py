import functools
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import HistGradientBoostingRegressor, IsolationForest, RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier
from sklearn.multioutput import ClassifierChain
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC, OneClassSVM

import smoothlime as sl
from smoothlime.errors import (
    CategoriesPerturbed,
    InvalidArgument,
    LostPrecision,
    ModelError,
    NoGradients,
    NotDeterministic,
    WrongType,
)
from smoothlime.models import Differentiable, Model

X, Y = make_classification(n_samples=120, n_features=4, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
POINTS = X[:5]


def network(*, outputs=2, dtype=torch.float32):
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ELU(), torch.nn.Linear(6, outputs)).to(dtype).eval()


class Dropout(torch.nn.Module):
    """Drops nothing."""

    def forward(self, a):
        return torch.tanh(a)


class functional(torch.nn.Module):
    def forward(self, a):
        return torch.tanh(a)


class TestTorch:
    def test_values_and_gradients_are_those_of_autograd(self):
        net = network(dtype=torch.float64)
        weights = np.random.default_rng(0).normal(size=(5, 2))
        values, gradients = sl.as_model(net).values_and_gradients(POINTS, weights)
        leaf = torch.tensor(POINTS, requires_grad=True)
        out = net(leaf)
        out.backward(torch.tensor(weights))
        np.testing.assert_allclose(values, out.detach())
        np.testing.assert_allclose(gradients, leaf.grad)

    def test_no_graph_and_no_parameter_gradients_are_left_behind(self):
        net = network()
        frozen = net[0].weight.requires_grad_(False)
        sl.explain(net, POINTS, target=0, n_samples=64)
        assert all(parameter.grad is None for parameter in net.parameters())
        assert not frozen.requires_grad
        assert net[2].weight.requires_grad

    def test_a_float32_network_gets_float32_points(self):
        seen = []
        net = network()
        net.register_forward_pre_hook(lambda module, args: seen.append(args[0].dtype))
        e = sl.explain(net, POINTS, target=0, n_samples=64)
        assert set(seen) == {torch.float32}
        assert e.provenance.dtype == "float32"
        assert e.values.dtype == np.float64

    def test_half_precision_networks_work(self):
        with pytest.warns(LostPrecision):
            e = sl.explain(network(dtype=torch.bfloat16), POINTS, target=0, n_samples=1_024)
        exact = sl.explain(network(), POINTS, target=0, n_samples=1_024)
        np.testing.assert_allclose(e.values, exact.values, atol=0.02)  # eight bits of mantissa

    def test_one_output_needs_no_target_and_may_be_flat(self):
        flat = torch.nn.Sequential(network(outputs=1), torch.nn.Flatten(0)).eval()
        np.testing.assert_allclose(
            sl.explain(flat, POINTS, n_samples=64).values,
            sl.explain(network(outputs=1), POINTS, n_samples=64).values,
        )

    def test_probability_puts_softmax_or_sigmoid_on_logits(self):
        points = POINTS.astype(np.float32)
        two = sl.as_model(network(), output="probability").values(points)
        np.testing.assert_allclose(two.sum(axis=1), 1, rtol=1e-6)
        logit = network(outputs=1)
        one = sl.as_model(logit, output="probability").values(points)[:, 0]
        expected = torch.sigmoid(logit(torch.tensor(points))).detach()[:, 0]
        np.testing.assert_allclose(one, expected, rtol=1e-6)

    @pytest.mark.parametrize(
        "layer", [torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(4), torch.nn.TransformerEncoderLayer(4, 2)]
    )
    def test_training_mode_is_an_error_with_the_fix_in_it(self, layer):
        net = torch.nn.Sequential(layer, torch.nn.Linear(4, 1)).train()
        with pytest.raises(ModelError, match=r"in training mode.*Call model\.eval\(\) first"):
            sl.explain(net, POINTS)
        if not isinstance(layer, torch.nn.TransformerEncoderLayer):
            sl.explain(net.eval(), POINTS, n_samples=64)

    @pytest.mark.parametrize("kind", [torch.nn.BatchNorm1d, torch.nn.SyncBatchNorm])
    def test_batch_norm_without_statistics_is_refused_in_evaluation_mode_too(self, kind):
        net = torch.nn.Sequential(kind(4, track_running_stats=False), torch.nn.Linear(4, 1)).eval()
        with pytest.raises(ModelError, match=r"batch norm without running statistics .*Give it statistics"):
            sl.explain(net, POINTS)
        of_each = torch.nn.Sequential(torch.nn.Unflatten(1, (1, 4)), torch.nn.InstanceNorm1d(1), torch.nn.Flatten(1))
        assert np.isfinite(sl.explain(of_each.eval(), POINTS, target=0, n_samples=64).values).all()

    @pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
    @pytest.mark.parametrize("way", ["script", "trace", "freeze", "load"])
    def test_modules_of_torchscript_are_modules(self, way, tmp_path):
        net = torch.nn.Sequential(network(outputs=3), torch.nn.BatchNorm1d(3), torch.nn.Dropout()).eval()
        made = torch.jit.trace(net, torch.zeros(2, 4)) if way == "trace" else torch.jit.script(net)
        if way == "freeze":
            made = torch.jit.freeze(made)
        elif way == "load":
            torch.jit.save(made, tmp_path / "net.pt")
            made = torch.jit.load(tmp_path / "net.pt")
        e, plain = (sl.explain(each, POINTS, target=1, n_samples=64) for each in (made, net))
        np.testing.assert_allclose(e.values, plain.values, rtol=1e-4, atol=1e-6)

    @pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
    @pytest.mark.parametrize("layer", [torch.nn.Dropout(), torch.nn.BatchNorm1d(2), torch.nn.RReLU()])
    def test_modules_of_torchscript_must_be_in_evaluation_mode_too(self, layer):
        made = torch.jit.script(torch.nn.Sequential(network(), layer.train()))
        with pytest.raises(ModelError, match=rf"has a {type(layer).__name__} \(at '1'\) in training mode.*eval\(\)"):
            sl.explain(made, POINTS, target=0)

    @pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
    @pytest.mark.parametrize("own", [Dropout, functional])
    def test_layers_of_ones_own_are_not_taken_for_torchs_by_their_names(self, own):
        for net in (own().train(), torch.jit.script(own().train())):
            assert np.isfinite(sl.explain(net, POINTS, target=0, n_samples=64).values).all()

    def test_lazy_buffers_are_refused_too(self):
        net = torch.nn.Sequential(torch.nn.LazyBatchNorm1d(affine=False), torch.nn.Linear(4, 1)).eval()
        with pytest.raises(ModelError, match="lazy layers without weights"):
            sl.explain(net, POINTS, n_samples=64)
        assert net[0].has_uninitialized_params()

    def test_lazy_layers_without_weights_are_refused_and_stay_so(self):
        net = torch.nn.Sequential(torch.nn.LazyLinear(3), torch.nn.Tanh(), torch.nn.LazyLinear(1)).eval()
        with pytest.raises(ModelError, match=r"lazy layers without weights.*Call it once on a batch"):
            sl.explain(net, [0.1, 0.2], n_samples=64)
        assert net[0].has_uninitialized_params()
        net(torch.zeros(1, 2))
        assert sl.explain(net, [0.1, 0.2], n_samples=64).values.shape == (1, 2)

    def test_layers_that_do_not_care_may_stay_in_training_mode(self):
        sl.explain(network().train(), POINTS, target=0, n_samples=64)

    def test_a_detached_output_says_that_gradients_do_not_reach_it(self):
        class Detached(torch.nn.Module):
            def forward(self, a):
                return a.detach().sum(dim=1)

        with pytest.raises(ModelError, match="does not depend on its input through differentiable"):
            sl.explain(Detached(), POINTS)
        assert np.isfinite(sl.explain(Detached(), POINTS, method="clime").values).all()

    def test_a_detached_input_is_found_with_trainable_parameters_too(self):
        class Detached(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = network()

            def forward(self, a):
                return self.inner(a.detach())

        with pytest.raises(ModelError, match="does not depend on its input through differentiable"):
            sl.explain(Detached().eval(), POINTS, target=0)

    @pytest.mark.parametrize("method", ["smoothgrad", "clime"])
    @pytest.mark.parametrize("kind", ["doubled", "shifted", "part", "rectified", "unfollowed"])
    def test_a_module_that_writes_into_its_input_is_given_copies(self, kind, method):
        class Writing(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = network(dtype=torch.float64)

            def forward(self, a):
                if kind == "doubled":
                    a.mul_(2)
                elif kind == "shifted":
                    a += 1
                elif kind == "part":
                    a[:, 0] = 2 * a[:, 0]
                elif kind == "rectified":
                    torch.nn.functional.relu(a, inplace=True)
                else:
                    with torch.no_grad():
                        a.add_(1)
                return self.inner(a)

        class Copying(Writing):
            def forward(self, a):
                return super().forward(a.clone())

        given = POINTS.copy()
        e, plain = (
            sl.explain(each.eval(), given, target=0, method=method, n_samples=256, design="iid", batch_size=100)
            for each in (Writing(), Copying())
        )
        np.testing.assert_allclose(e.values, plain.values, rtol=1e-12, atol=1e-14)
        np.testing.assert_array_equal(e.prediction, plain.prediction)
        np.testing.assert_array_equal(given, POINTS)

    def test_a_tidy_module_is_given_no_copies(self):
        seen = []
        net = network(dtype=torch.float64)
        net.register_forward_pre_hook(lambda module, args: seen.append(args[0].data_ptr()))
        model, points = sl.as_model(net), POINTS.copy()
        model.values(points)
        model.values(points)
        assert set(seen) == {points.ctypes.data}

    @pytest.mark.parametrize("method", ["smoothgrad", "clime"])
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_a_module_may_use_the_memory_of_its_output_again(self, dtype, method):
        class Reusing(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = network(outputs=1, dtype=dtype)
                self.register_buffer("space", torch.empty(10**5, 1, dtype=dtype))

            def forward(self, a):
                return self.space.detach()[: len(a)].copy_(self.inner(a))

        model, plain = Reusing().eval(), network(outputs=1, dtype=dtype)
        first = sl.as_model(model).values(X[:1])
        kept = first.copy()
        sl.as_model(model).values(X[1:2])
        np.testing.assert_array_equal(first, kept)
        e, other = (sl.explain(each, X, method=method, n_samples=256, batch_size=50) for each in (model, plain))
        for name in ("prediction", "smoothed", "values", "standard_error"):
            np.testing.assert_allclose(getattr(e, name), getattr(other, name), rtol=1e-5, atol=1e-6, err_msg=name)

    def test_a_random_module_that_uses_the_memory_of_its_output_again_is_found(self):
        class Random(torch.nn.Module):
            space = torch.empty(10**5, dtype=torch.float64)

            def __init__(self):
                super().__init__()
                self.scale = torch.nn.Parameter(torch.ones(4, dtype=torch.float64))
                self.calls = 0

            def forward(self, a):
                self.calls += 1
                return self.space[: len(a)].copy_((a @ self.scale).detach() + self.calls)

        with pytest.raises(NotDeterministic, match="two answers for row 0"):
            sl.explain(Random(), POINTS, method="clime", n_samples=64)

    def test_a_module_that_writes_into_its_input_unseen_is_refused(self):
        class Hidden(torch.nn.Module):
            def forward(self, a):
                a.data.mul_(2)
                return a.sum(dim=1)

        with pytest.raises(ModelError, match=r"writes into its input unseen .*work on a copy: x = x\.clone\(\)"):
            sl.explain(Hidden(), POINTS, n_samples=64)

    def test_points_of_inference_mode_are_points(self):
        with torch.inference_mode():
            e = sl.explain(network(), POINTS, target=0, method="clime", n_samples=64)
        assert np.isfinite(e.values).all()

    def test_gradients_within_inference_mode_name_the_way_out(self):
        with (
            torch.inference_mode(),
            pytest.raises(ModelError, match=r"inference mode is on.*Leave the `with torch\.inference_mode\(\)` block"),
        ):
            sl.explain(network(), POINTS, target=0, n_samples=64)

    def test_no_grad_around_the_call_changes_nothing(self):
        with torch.no_grad():
            e = sl.explain(network(), POINTS, target=0, n_samples=64)
        np.testing.assert_array_equal(e.values, sl.explain(network(), POINTS, target=0, n_samples=64).values)

    @pytest.mark.parametrize("method", ["smoothgrad", "clime"])
    @pytest.mark.parametrize("output", [None, "probability"])
    @pytest.mark.parametrize(
        ("pack", "said"),
        [
            (lambda out: (out, None), r"returned a tuple of 2 parts, with positions 0 to 1.*output_key=0\)$"),
            (
                lambda out: {"hidden": out, "logits": out},
                r"returned a dict with parts 'hidden', 'logits'.*output_key='logits'\)$",
            ),
            (lambda out: {"score": out}, r"returned a dict with parts 'score'.*output_key='score'\)$"),
            (lambda out: None, r"returned a NoneType.*returns the part to explain$"),
        ],
    )
    def test_outputs_that_are_no_tensor_name_the_way_out(self, pack, said, output, method):
        class Packing(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = network()

            def forward(self, a):
                return pack(self.inner(a))

        with pytest.raises(ModelError, match=rf"^the network {said}"):
            sl.explain(sl.as_model(Packing(), output=output), POINTS, target=0, method=method, n_samples=64)

    def test_a_module_with_a_predict_method_is_still_a_module(self):
        class WithPredict(torch.nn.Sequential):
            def predict(self, a):
                return self(a)

        net = network()
        e = sl.explain(WithPredict(*net).eval(), POINTS, target=0, n_samples=64)
        np.testing.assert_array_equal(e.values, sl.explain(net, POINTS, target=0, n_samples=64).values)

    def test_margin_is_not_for_networks(self):
        with pytest.raises(InvalidArgument, match="output='margin' is for classifiers"):
            sl.as_model(network(), output="margin")

    def test_outputs_can_be_named(self):
        model = sl.as_model(network(), outputs=("no", "yes"))
        assert sl.explain(model, POINTS, target="yes", n_samples=64).output_name == "yes"
        with pytest.raises(InvalidArgument, match="names 3 outputs"):
            sl.explain(sl.as_model(network(), outputs=("a", "b", "c")), POINTS, target=0)

    def test_tensors_are_rows_too(self):
        tensor = torch.tensor(POINTS, requires_grad=True)
        np.testing.assert_array_equal(
            sl.explain(network(), tensor, target=0, n_samples=64).values,
            sl.explain(network(), POINTS, target=0, n_samples=64).values,
        )


class TestEstimators:
    def test_classifiers_are_asked_for_probabilities(self):
        forest = RandomForestClassifier(5, random_state=0).fit(X, Y)
        model = sl.as_model(forest)
        assert model.outputs == ("0", "1", "2")
        np.testing.assert_array_equal(model.values(POINTS), forest.predict_proba(POINTS))
        assert isinstance(model, Model)
        assert not isinstance(model, Differentiable)

    def test_margins_are_decision_functions(self):
        logistic = LogisticRegression().fit(X, Y)
        np.testing.assert_array_equal(
            sl.as_model(logistic, output="margin").values(POINTS), logistic.decision_function(POINTS)
        )
        binary = LogisticRegression().fit(X, Y == 1)
        model = sl.as_model(binary, output="margin")
        assert model.outputs == ("True",)
        e = sl.explain(binary, POINTS, output="margin", method="clime", n_samples=64)
        np.testing.assert_allclose(e.values, np.repeat(binary.coef_, 5, axis=0), rtol=1e-9)

    @pytest.mark.parametrize("wrap", [lambda each: each, lambda each: make_pipeline(StandardScaler(), each)])
    @pytest.mark.parametrize(
        "detector", [IsolationForest(n_estimators=8, random_state=0), OneClassSVM()], ids=lambda e: repr(e)[:9]
    )
    def test_margins_of_outlier_detectors_are_decision_functions(self, detector, wrap):
        fitted = wrap(detector).fit(X)
        e = sl.explain(fitted, POINTS, output="margin", n_samples=64)
        np.testing.assert_array_equal(e.prediction, fitted.decision_function(POINTS))

    def test_regressors_are_asked_to_predict(self):
        data, y = make_regression(80, 4, random_state=0)
        linear = LinearRegression().fit(data, y)
        e = sl.explain(linear, data[:2], n_samples=64)
        np.testing.assert_allclose(e.values, np.repeat(linear.coef_[None], 2, axis=0), rtol=1e-9)
        several = LinearRegression().fit(data, np.column_stack([y, -y]))
        assert set(sl.explain_outputs(several, data[:2], n_samples=64)) == {"0", "1"}

    def test_columns_in_another_order_are_refused(self):
        import pandas as pd

        frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
        forest = RandomForestClassifier(5, random_state=0).fit(frame, Y)
        with pytest.raises(InvalidArgument, match="different columns: at position 0 X has 'd' and the model 'a'"):
            sl.explain(forest, frame[["d", "c", "b", "a"]], target=0)
        assert sl.explain(forest, frame[:2], target=0, n_samples=64).feature_names == ("a", "b", "c", "d")

    def test_names_come_from_the_rows_where_the_model_has_none(self):
        import pandas as pd

        frame = pd.DataFrame(X[:2], columns=["a", "b", "c", "d"])
        assert sl.explain(lambda a: a.sum(axis=1), frame).feature_names == ("a", "b", "c", "d")

    def test_threads_leave_the_filters_of_warnings_as_they_were(self):
        entered = [threading.Event(), threading.Event()]
        first_is_done = threading.Event()

        class Slow:
            def predict(self, a):
                me = int(a[0, 0])
                entered[me].set()
                assert entered[1 - me].wait(10)
                assert me == 0 or first_is_done.wait(10)
                return a[:, 0]

        model, before = sl.as_model(Slow()), list(warnings.filters)
        with ThreadPoolExecutor(2) as pool:
            asked = [pool.submit(model.values, np.full((1, 2), float(me))) for me in range(2)]
            asked[0].result()
            first_is_done.set()
            asked[1].result()
        assert list(warnings.filters) == before

    def test_names_come_from_the_estimator(self):
        import pandas as pd

        frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
        forest = RandomForestClassifier(5, random_state=0).fit(frame, Y)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert sl.explain(forest, POINTS, target="1", n_samples=64).feature_names == ("a", "b", "c", "d")

    def test_a_missing_door_names_the_other(self):
        with pytest.raises(
            InvalidArgument, match="needs predict_proba, which this LinearSVC has not; use output='margin'"
        ):
            sl.explain(LinearSVC().fit(X, Y), POINTS, target=0)
        with pytest.raises(InvalidArgument, match=r"needs decision_function.*use output='probability'"):
            sl.explain(RandomForestClassifier(2).fit(X, Y), POINTS, target=0, output="margin")

    def test_scores_of_pairs_of_classes_are_not_taken_for_those_of_classes(self):
        four = np.digitize(X[:, 0], [-1.0, 0.0, 1.0])
        for labels in (Y, four):
            pairs = SVC(decision_function_shape="ovo").fit(X, labels)
            for wrapped in (pairs, make_pipeline(StandardScaler(), pairs).fit(X, labels)):
                with pytest.raises(
                    InvalidArgument, match=r"scores of this SVC belong to pairs.*decision_function_shape='ovr'"
                ):
                    sl.explain(wrapped, POINTS, output="margin", target=0)
            pairs.set_params(decision_function_shape="ovr")
            predicted = sl.explain(pairs, POINTS, output="margin", target="predicted", n_samples=64)
            assert predicted.row_outputs == tuple(str(each) for each in pairs.predict(POINTS))
        two = SVC(decision_function_shape="ovo").fit(X, Y == 1)
        assert sl.explain(two, POINTS, output="margin", n_samples=64).output_name == "True"

    @pytest.mark.parametrize("classes", [3, 4])
    def test_votes_between_pairs_are_scores_of_classes(self, classes):
        labels = np.digitize(X[:, 0], [-1.0, 0.0, 1.0][-classes + 1 :])
        votes = OneVsOneClassifier(LinearSVC()).fit(X, labels)
        model = sl.as_model(votes, output="margin")
        assert model.outputs == tuple(str(each) for each in votes.classes_)
        np.testing.assert_array_equal(votes.classes_[model.values(X).argmax(axis=1)], votes.predict(X))

    def test_labels_alone_name_a_way_out_that_works(self):
        parts = [("a", LogisticRegression()), ("b", LogisticRegression(C=0.1))]
        hard = VotingClassifier(parts).fit(X, Y)
        for output in ("probability", "margin"):
            with pytest.raises(InvalidArgument, match=r"neither predict_proba nor decision_function.*voting='soft'"):
                sl.explain(hard, POINTS, target=0, output=output)
        rule = type("Rule", (), {"classes_": [0, 1], "predict": lambda self, a: a[:, 0] > 0, "predict_proba": None})
        with pytest.raises(InvalidArgument, match=r"this Rule has neither .*lambda a: model.predict\(a\) == label"):
            sl.explain(rule(), POINTS, target=0)

    def test_the_labels_of_a_classifier_are_no_numbers(self):
        classifier = LogisticRegression().fit(X, Y)
        searched = GridSearchCV(make_pipeline(classifier), {"logisticregression__C": [1.0]}, cv=2).fit(X, Y)
        for owner in (classifier, make_pipeline(classifier), searched, VotingClassifier([("a", classifier)]).fit(X, Y)):
            for ask in (sl.as_model, lambda model: sl.explain(model, POINTS)):
                with pytest.raises(WrongType, match=rf"the predict of a {type(owner).__name__}, which returns labels"):
                    ask(owner.predict)
        with pytest.raises(WrongType, match="the predict of a LogisticRegression, which returns labels"):
            sl.as_model(functools.partial(classifier.predict))
        sl.explain(lambda a: classifier.predict(a) == 1, POINTS, n_samples=64)

        class Plain:
            classes_ = None  # it has none, and says so

            def predict(self, a):
                return a[:, 0]

        sl.explain(Plain().predict, POINTS, n_samples=64)
        regressor = make_pipeline(LinearRegression()).fit(X, Y)
        by_function = sl.explain(regressor.predict, POINTS, n_samples=64)
        np.testing.assert_array_equal(by_function.prediction, regressor.predict(POINTS))

    def test_several_targets_at_once_name_a_function_that_works(self):
        targets = np.column_stack([Y == 1, Y == 2])
        forest = RandomForestClassifier(5, random_state=0).fit(X, targets)
        with pytest.raises(InvalidArgument, match=r"several targets at once.*model.predict_proba\(a\)\[0\]\[:, 1\]"):
            sl.explain(forest, POINTS)
        sl.explain(lambda a: forest.predict_proba(a)[0][:, 1], POINTS, n_samples=64)
        chain = ClassifierChain(LogisticRegression()).fit(X, targets)
        with pytest.raises(InvalidArgument, match=r"several targets at once.*model.predict_proba\(a\)\[:, 0\]"):
            sl.explain(chain, POINTS)
        sl.explain(lambda a: chain.predict_proba(a)[:, 0], POINTS, n_samples=64)

    def test_outlier_factors_of_new_points_need_novelty(self):
        with pytest.raises(WrongType, match="got a LocalOutlierFactor, which scores new points if made with novelty"):
            sl.explain(LocalOutlierFactor().fit(X), POINTS, output="margin")

    def test_categories_that_are_perturbed_are_named(self):
        import lightgbm
        import xgboost

        rng = np.random.default_rng(0)
        data = np.column_stack([rng.normal(size=200), rng.integers(0, 5, 200)])
        y = data[:, 0] + 3 * np.isin(data[:, 1], [1, 4])
        few = {"verbose": -1, "n_jobs": 1, "n_estimators": 3}
        light = lightgbm.LGBMRegressor(**few).fit(data, y, categorical_feature=[1])
        boosted = xgboost.XGBRegressor(enable_categorical=True, feature_types=["q", "c"], n_estimators=3, n_jobs=1)
        binned = HistGradientBoostingRegressor(max_iter=3, categorical_features=[1]).fit(data, y)
        search = GridSearchCV(binned, {"max_iter": [3]}, cv=2).fit(data, y)
        read = lightgbm.Booster(model_str=light.booster_.model_to_string())
        for model in (light, read, boosted.fit(data, y), binned, search):
            with pytest.warns(CategoriesPerturbed, match=r"'x1' is a category to the .*fixed=\['x1'\]") as caught:
                sl.explain(model, data[:2], n_samples=64)
            assert len(caught) == 1
            assert caught[0].filename == __file__
            sl.explain(model, data[:2], sigma=sl.Neighbourhood(fixed=["x1"]), n_samples=64)
        plain = lightgbm.LGBMRegressor(**few).fit(data, y)
        sl.explain(plain, data[:2], n_samples=64)

    @pytest.mark.parametrize(
        ("members", "outputs"),
        [({}, ()), ({"n_features_in_": 4, "fit": None}, ()), ({"classes_": ["no", "yes"]}, ("no", "yes"))],
    )
    def test_own_classifiers_are_asked_for_probabilities(self, members, outputs):
        def predict_proba(self, points):
            p = 1 / (1 + np.exp(-points[:, 0]))
            return np.column_stack([1 - p, p])

        methods = {"predict": lambda self, points: points[:, 0] > 0, "predict_proba": predict_proba}
        own = type("Own", (), {**methods, **members})()
        model = sl.as_model(own)
        assert model.outputs == outputs
        np.testing.assert_array_equal(model.values(POINTS), own.predict_proba(POINTS))
        assert sl.explain(own, POINTS, target=1, n_samples=64).output_name == (outputs or ("0", "1"))[1]

    def test_unfitted_estimators_say_so(self):
        with pytest.raises(InvalidArgument, match="RandomForestClassifier is not fitted"):
            sl.explain(RandomForestClassifier(), POINTS)
        with pytest.raises(WrongType, match="model is the class RandomForestClassifier; give an instance"):
            sl.as_model(RandomForestClassifier)

    def test_gradients_asked_of_a_forest_name_the_way_out(self):
        forest = RandomForestClassifier(2, random_state=0).fit(X, Y)
        with pytest.raises(NoGradients, match="smoothgrad needs gradients; a RandomForestClassifier gives only values"):
            sl.explain(forest, POINTS, method="smoothgrad", target=0)

    @pytest.mark.parametrize("none", [[], np.array([]), 2, np.array(2)])
    def test_a_list_of_no_classes_is_that_of_a_regressor(self, none):
        """As CatBoost has it, whose models all have `classes_`."""

        class Regressor:
            _estimator_type = "regressor"
            n_features_in_ = 2
            classes_ = none

            def fit(self, X, y):
                return self

            def predict(self, X):
                return 2.0 * X[:, 0]

        e = sl.explain(Regressor(), [0.0, 0.0], n_samples=64)
        np.testing.assert_allclose(e.values[0], [2.0, 0.0], atol=1e-9)


class TestFunctions:
    def test_own_gradients_of_several_outputs_are_weighted(self):
        model = sl.from_functions(
            values=lambda a: a[:, :2], gradients=lambda a: np.broadcast_to(np.eye(2, 4), (len(a), 2, 4))
        )
        _, gradients = model.values_and_gradients(POINTS, np.full((5, 2), [2.0, -1.0]))
        np.testing.assert_array_equal(gradients, np.full((5, 4), [2.0, -1.0, 0.0, 0.0]))

    def test_gradients_of_the_wrong_shape_say_what_is_wanted(self):
        model = sl.from_functions(values=lambda a: a[:, 0], gradients=lambda a: a[:, :2])
        with pytest.raises(ModelError, match=r"wanted \(\d+, 1, 4\), got \(\d+, 1, 2\)"):
            sl.explain(model, POINTS)

    @pytest.mark.parametrize("ask", [sl.explain, sl.explain_outputs, sl.agreement])
    def test_margins_are_refused_of_what_has_but_one_output(self, ask):
        with pytest.raises(InvalidArgument, match="a function's outputs are explained as they are"):
            ask(lambda a: a[:, 0], POINTS, output="margin")
        with pytest.raises(InvalidArgument, match="a torch module's outputs are taken as they come"):
            ask(torch.nn.Linear(4, 1), POINTS, output="margin")

    def test_a_model_was_told_its_output_when_it_was_made(self):
        margin = sl.as_model(LogisticRegression().fit(X, Y == 1), output="margin")
        asked = [sl.explain(margin, POINTS, output=output, n_samples=64) for output in ("probability", "margin")]
        np.testing.assert_array_equal(asked[0].values, asked[1].values)

    def test_a_text_is_no_list_of_names(self):
        for make in (sl.as_model, lambda f, **names: sl.from_functions(values=f, **names)):
            with pytest.raises(WrongType, match=r"outputs must be a list of names; got the text 'price'.*\['price'\]"):
                make(lambda a: a[:, 0], outputs="price")
            with pytest.raises(WrongType, match="feature_names must be a list of names; got the text 'abcd'"):
                make(lambda a: a[:, 0], feature_names="abcd")
            with pytest.raises(WrongType, match="outputs must be a list of names; got None"):
                make(lambda a: a[:, 0], outputs=None)
            with pytest.raises(WrongType, match="feature_names must be a list of names; got 4"):
                make(lambda a: a[:, 0], feature_names=4)

    def test_things_that_do_not_predict_are_refused(self):
        with pytest.raises(WrongType, match=r"model must be a torch module.*got a str"):
            sl.explain("model", POINTS)
        with pytest.raises(WrongType, match="values must be a function of points"):
            sl.from_functions(values=3)
        with pytest.raises(WrongType, match=r"values must be a function of points.*got a NoneType"):
            sl.from_functions(values=None, gradients=len)
        with pytest.raises(InvalidArgument, match="device is for torch modules"):
            sl.as_model(len, device="cpu")
        with pytest.raises(InvalidArgument, match="output must be 'probability' or 'margin'; got 'logit'"):
            sl.as_model(len, output="logit")
        with pytest.raises(InvalidArgument, match="a function's outputs are explained as they are"):
            sl.as_model(len, output="probability")
        with pytest.raises(InvalidArgument, match="obj is a Model already"):
            sl.as_model(sl.as_model(len), feature_names=["a"])

    def test_functions_may_reuse_their_output_and_write_into_their_input(self):
        buffer = np.empty(10**5)

        def reusing(a):
            np.multiply(a[:, 0], 2, out=buffer[: len(a)])
            return buffer[: len(a)]

        e = sl.explain(reusing, POINTS, method="clime", n_samples=256, batch_size=50)
        np.testing.assert_allclose(e.prediction, 2 * POINTS[:, 0])
        np.testing.assert_allclose(e.values[:, 0], 2, rtol=1e-9)

        def rectify(a):
            np.maximum(a, 0, out=a)
            return a.sum(axis=1)

        model = sl.from_functions(values=rectify, gradients=lambda a: (a > 0).astype(float))
        plain = sl.from_functions(values=lambda a: rectify(a.copy()), gradients=lambda a: (a > 0).astype(float))
        for method in ("smoothgrad", "clime"):
            np.testing.assert_array_equal(
                sl.explain(model, POINTS, method=method, n_samples=64).values,
                sl.explain(plain, POINTS, method=method, n_samples=64).values,
            )

    def test_output_names_must_differ(self):
        with pytest.raises(InvalidArgument, match="outputs must have different names; 'p' stands there 2 times"):
            sl.explain(sl.as_model(lambda a: a[:, :2], outputs=("p", "p")), POINTS, target=0)

    @pytest.mark.parametrize("named", [None, "ab", 2])
    def test_outputs_of_a_model_of_ones_own_are_a_list_of_names(self, named):
        class Own:
            outputs = named

            def values(self, points):
                return points[:, :2]

        with pytest.raises(WrongType, match="outputs must be a list of names; got"):
            sl.explain(Own(), POINTS, target=0, n_samples=64)
        Own.outputs = ["a", "b"]
        assert sl.explain(Own(), POINTS, target="b", n_samples=64).output_name == "b"

    @pytest.mark.parametrize("answer", [np.zeros((3, 4)), None, (1, 2, 3)])
    def test_a_model_of_ones_own_answers_outputs_and_gradients(self, answer):
        class Own:
            outputs = ()

            def values(self, points):
                return points[:, :1]

            def values_and_gradients(self, points, weights):
                return answer

        with pytest.raises(
            ModelError, match=r"values_and_gradients must return outputs \(n, k\) and gradients \(n, d\)"
        ):
            sl.explain(Own(), POINTS, n_samples=64)

    def test_a_model_is_its_own_adapter(self):
        model = sl.as_model(lambda a: a.sum(axis=1), feature_names=["a", "b", "c", "d"])
        assert sl.as_model(model) is model
        assert sl.explain(model, POINTS, n_samples=64).feature_names == ("a", "b", "c", "d")


def test_what_is_called_steps_need_not_be_those_of_a_pipeline():
    class Own:
        classes_, steps, n_features_in_ = np.array(["a", "b"]), 100, 2

        def predict(self, points):
            return np.where(points[:, 0] > 0, "b", "a")

        def predict_proba(self, points):
            p = 1 / (1 + np.exp(-points[:, 0]))
            return np.column_stack([1 - p, p])

        def decision_function(self, points):
            return points[:, 0]

    for output in ("probability", "margin"):
        e = sl.explain(Own(), [0.1, 0.2], target="b", output=output, n_samples=64)
        assert e.values[0, 0] > 0
