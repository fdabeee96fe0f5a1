import numpy as np
import pytest
import torch
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge, SGDClassifier

import smoothlime as sl
from smoothlime.errors import InvalidArgument, ModelError, WrongType

X, Y = make_classification(n_samples=150, n_features=5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
WIDE = np.random.default_rng(0).normal(scale=4, size=(4_000, 5))


def longest(model, points=WIDE):
    """Largest gradient length of any output over many points, by central differences."""
    steps = 1e-5 * np.eye(points.shape[1])
    values = [model.values(points + step) - model.values(points - step) for step in steps]
    return np.sqrt((np.stack(values) ** 2).sum(axis=0)).max() / 2e-5


def test_linear_models_are_exact():
    ridge = Ridge().fit(X, X @ [3.0, 0, 0, 4.0, 0])
    assert sl.gradient_bound(ridge) == pytest.approx(np.linalg.norm(ridge.coef_))
    sgd = SGDClassifier(random_state=0).fit(X, Y)
    assert sl.gradient_bound(sgd, output="margin") == pytest.approx(np.linalg.norm(sgd.coef_, axis=1).max())


def test_binary_logistic_regression_is_exact():
    model = LogisticRegression().fit(X, Y == 1)
    on_boundary = WIDE - np.outer(model.decision_function(WIDE), model.coef_[0]) / (model.coef_[0] @ model.coef_[0])
    assert sl.gradient_bound(model) == pytest.approx(longest(sl.as_model(model), on_boundary), rel=1e-6)


def test_softmax_regression_is_bounded():
    model = LogisticRegression(C=10).fit(X, Y)
    found, seen = sl.gradient_bound(model), longest(sl.as_model(model))
    assert seen <= found < 3 * seen


ACTIVATIONS = [
    torch.nn.ReLU(), torch.nn.ReLU6(), torch.nn.Tanh(), torch.nn.Sigmoid(), torch.nn.Softsign(),
    torch.nn.Softplus(1.0, 40.0), torch.nn.Softplus(5.0, 40.0), torch.nn.Softplus(-1.0, 40.0),
    torch.nn.LogSigmoid(), torch.nn.CELU(0.3), torch.nn.Hardtanh(), torch.nn.Hardsigmoid(), torch.nn.Hardswish(),
    torch.nn.SELU(), torch.nn.SiLU(), torch.nn.GELU(), torch.nn.GELU("tanh"), torch.nn.Mish(), torch.nn.ELU(1.7),
    torch.nn.LeakyReLU(1.3), torch.nn.Identity(), torch.nn.Dropout(0.5),
]  # fmt: skip


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda layer: str(layer))
def test_no_activation_is_steeper_than_we_say(activation):
    """One unit with slope 1 around it: the bound must hold and be attained to a percent."""
    first, last = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
    for layer in (first, last):
        torch.nn.init.ones_(layer.weight)
        torch.nn.init.zeros_(layer.bias)
    net = torch.nn.Sequential(first, activation, last).double().eval()
    seen = longest(sl.as_model(net), np.linspace(-8, 8, 40_001)[:, None])
    assert seen <= sl.gradient_bound(net) * (1 + 1e-9)
    assert seen >= 0.99 * sl.gradient_bound(net)


@pytest.mark.parametrize("output", [None, "probability"])
@pytest.mark.parametrize("outputs", [1, 3])
def test_networks_are_bounded(outputs, output):
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(5, 8), torch.nn.BatchNorm1d(8), torch.nn.ELU(), torch.nn.Sequential(torch.nn.Linear(8, outputs))
    ).double().eval()  # fmt: skip
    net[1].running_var.fill_(0.5)
    model = sl.as_model(net, output=output)
    found = sl.gradient_bound(net, output=output)
    assert longest(model) <= found
    assert sl.gradient_bound(model) == found


def test_a_softmax_inside_a_network_is_as_steep_as_all_its_outputs():
    net = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.Softmax(dim=1), torch.nn.Linear(2, 1)).double()
    for layer in (net[0], net[2]):
        layer.weight.data = torch.tensor([[1.0, -1.0]]).double().reshape(layer.weight.shape)
        layer.bias.data.zero_()
    seen = longest(sl.as_model(net), np.linspace(-1, 1, 2_001)[:, None])
    assert seen == pytest.approx(1.0, rel=1e-6)
    assert sl.gradient_bound(net) >= seen * (1 - 1e-9)
    ends = torch.nn.Sequential(torch.nn.Linear(5, 3), torch.nn.Softmax(dim=1)).double()
    assert longest(sl.as_model(ends)) <= sl.gradient_bound(ends)
    twice = sl.as_model(ends, output="probability")
    assert longest(twice) <= sl.gradient_bound(twice)


def test_classes_are_trusted_by_origin_not_by_name():
    from sklearn.svm import SVC, OneClassSVM

    class Linear(torch.nn.Linear):
        def forward(self, a):
            return 100 * super().forward(a)

    class Sequential(torch.nn.Sequential):
        def forward(self, a):
            return 100 * super().forward(a)

    for module in (torch.nn.Sequential(torch.nn.Linear(2, 2), Linear(2, 1)), Sequential(torch.nn.Linear(2, 1))):
        with pytest.raises(WrongType):
            sl.gradient_bound(module)
    for model in (SVC(kernel="linear").fit(X, Y), OneClassSVM(kernel="linear").fit(X)):
        with pytest.raises(WrongType, match="its output may not be linear"):
            sl.gradient_bound(model, output="margin")
    with pytest.raises(ModelError, match="without running statistics"):
        sl.gradient_bound(
            torch.nn.Sequential(torch.nn.BatchNorm1d(2, track_running_stats=False), torch.nn.Linear(2, 1))
        )
    steep = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.ELU(-3.0), torch.nn.Linear(1, 1)).double().eval()
    assert longest(sl.as_model(steep), np.linspace(-8, 8, 4_001)[:, None]) <= sl.gradient_bound(steep)


@pytest.mark.parametrize("kind", ["forward_hook", "forward_pre_hook", "full_backward_hook", "full_backward_pre_hook"])
def test_hooks_may_change_anything(kind):
    net = torch.nn.Sequential(torch.nn.Linear(2, 1))
    bound = sl.gradient_bound(net)
    everywhere = getattr(torch.nn.modules.module, f"register_module_{kind}")
    for register in (getattr(net[0], f"register_{kind}"), everywhere):
        handle = register(lambda *_: None)
        try:
            with pytest.raises(WrongType, match="the network has hooks"):
                sl.gradient_bound(net)
        finally:
            handle.remove()
    assert sl.gradient_bound(net) == bound


def test_a_softplus_that_jumps_by_little_may_jump_where_weights_are_smaller_still():
    """Slopes of 1e-7 are bounded by 1e-7; but ln(1 + e⁻¹⁴) = 8e-7 is lost at 14, and C-LIME sees it."""
    net = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Softplus(1.0, 14.0)).double()
    with torch.no_grad():
        net[0].weight.fill_(1e-7)
        net[0].bias.fill_(14.0)
    e = sl.explain(net, [[0.0]], method="clime", n_samples=4_096)
    assert abs(e.values[0, 0]) > 2e-7
    for threshold in (14.0, 20.0):
        net[1].threshold = threshold
        with pytest.raises(WrongType, match=r"nn\.Softplus\(beta, threshold=40\) is enough for numbers of float64"):
            sl.gradient_bound(net)
    net[1].threshold = 40.0
    assert sl.gradient_bound(net) == pytest.approx(1e-7)
    net[1].threshold = 20.0
    assert sl.gradient_bound(net.float()) == pytest.approx(1e-7)


def test_a_model_that_was_made_is_bounded_as_it_was_made():
    net = torch.nn.Sequential(torch.nn.Linear(2, 1))
    by_probability, as_it_comes = sl.as_model(net, output="probability"), sl.as_model(net)
    assert sl.gradient_bound(by_probability, output="probability") == sl.gradient_bound(net, output="probability")
    assert sl.gradient_bound(as_it_comes, output="margin") == sl.gradient_bound(net)
    with pytest.raises(
        InvalidArgument, match=r"output='margin' is not what this model was made for: .*as_model\(module"
    ):
        sl.gradient_bound(by_probability, output="margin")
    with pytest.raises(InvalidArgument, match=r"output='probability' is not what .* its outputs as they come"):
        sl.gradient_bound(as_it_comes, output="probability")


def test_two_classes_by_softmax_are_twice_as_steep():
    """As scikit-learn before 1.8 has them with multi_class="multinomial": the softmax of (−d, d)."""
    model = LogisticRegression().fit(X, Y == 1)
    once = sl.gradient_bound(model)
    model.multi_class = "multinomial"

    def probability(points):
        d = model.decision_function(points)
        return np.exp(d) / (np.exp(d) + np.exp(-d))

    on_boundary = WIDE - np.outer(model.decision_function(WIDE), model.coef_[0]) / (model.coef_[0] @ model.coef_[0])
    assert sl.gradient_bound(model) == pytest.approx(longest(sl.as_model(probability), on_boundary), rel=1e-6)
    assert sl.gradient_bound(model) == 2 * once
    assert sl.gradient_bound(model, output="margin") == pytest.approx(4 * once)


@pytest.mark.parametrize("name", ["predict", "predict_proba", "decision_function"])
def test_a_prediction_that_was_replaced_may_be_anything(name):
    model = LogisticRegression().fit(X, Y == 1)
    setattr(model, name, lambda points: 10 * points)
    with pytest.raises(WrongType, match=f"a {name} that was replaced"):
        sl.gradient_bound(model)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_weights_that_are_no_numbers_have_no_bound(number):
    model = LogisticRegression().fit(X, Y == 1)
    model.coef_[0, 1] = number
    with pytest.raises(WrongType, match="coefficients of this LogisticRegression are not finite"):
        sl.gradient_bound(model)
    for part in (0, 1):
        net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2), torch.nn.Linear(2, 1)).eval()
        with torch.no_grad():
            (net[0].weight[0] if part == 0 else net[1].running_mean).fill_(number)
        with pytest.raises(WrongType, match="holds numbers that are not finite"):
            sl.gradient_bound(net)


def test_layers_that_divide_by_zero_or_mix_rows_have_none():
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2, eps=0.0), torch.nn.Linear(2, 1)).eval()
    net[1].running_var.zero_()
    with pytest.raises(WrongType, match="the network's bound is not finite"):
        sl.gradient_bound(net)
    for place in (0, -2):
        for end in ([], [torch.nn.Linear(2, 1)]):
            with pytest.raises(WrongType, match=f"a Softmax over dimension {place} mixes rows"):
                sl.gradient_bound(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Softmax(dim=place), *end))
    with pytest.raises(WrongType, match="a Flatten from dimension 0 on may mix rows"):
        sl.gradient_bound(torch.nn.Sequential(torch.nn.Flatten(0), torch.nn.Linear(2, 1)))


@pytest.mark.parametrize("part", [0, 1, None])
def test_a_forward_that_was_replaced_may_compute_anything(part):
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
    layer = net if part is None else net[part]
    layer.forward = lambda a: 10 * a
    with pytest.raises(WrongType, match=f"a {type(layer).__name__} whose forward was replaced"):
        sl.gradient_bound(net)


@pytest.mark.parametrize(
    ("activation", "message"),
    [
        (torch.nn.CELU(-1.0), r"a CELU with alpha=-1 grows without bound"),
        (torch.nn.Softplus(threshold=0.0), r"a Softplus with beta=1 and threshold=0 jumps"),
        (torch.nn.Softplus(threshold=9.0), r"jumps where it becomes a line"),
        (torch.nn.Softplus(threshold=14.0), r"nn\.Softplus\(beta, threshold=20\) is enough for numbers of float32"),
        (torch.nn.Softplus(threshold=float("nan")), r"jumps where it becomes a line"),
        (torch.nn.Softplus(beta=0.0), r"a Softplus with beta=0"),
    ],
    ids=str,
)
def test_activations_that_jump_or_grow_without_bound_are_refused(activation, message):
    with pytest.raises(WrongType, match=message):
        sl.gradient_bound(torch.nn.Sequential(torch.nn.Linear(2, 2), activation, torch.nn.Linear(2, 1)))


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_networks_of_few_digits_have_no_bound(kind):
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)).eval()
    with pytest.raises(WrongType, match=f"computes in {kind}, whose rounding may make it steeper"):
        sl.gradient_bound(net.to(kind))
    assert sl.gradient_bound(net.double()) > 0  # digits that are lost do not come back, but no more are


def test_weights_that_autocast_rounds_have_no_bound():
    """1.0045 becomes 1.0078 in bfloat16: two such layers are longer than the bound of the weights."""
    net = torch.nn.Sequential(torch.nn.Linear(2, 1)).eval()
    with pytest.raises(WrongType, match=r"rounded to torch\.bfloat16"):
        sl.gradient_bound(sl.as_model(net, autocast="bfloat16"))
    assert sl.gradient_bound(sl.as_model(net)) == sl.gradient_bound(net)


def test_sparse_coefficients_count_too():
    model = LogisticRegression().fit(X, Y == 1)
    dense = sl.gradient_bound(model)
    assert sl.gradient_bound(model.sparsify()) == pytest.approx(dense)


def test_what_cannot_be_bounded_is_named():
    class Own(torch.nn.Module):
        def forward(self, a):
            return a**2

    with pytest.raises(WrongType, match="a Own of its own making"):
        sl.gradient_bound(torch.nn.Sequential(torch.nn.Linear(2, 2), Own(), torch.nn.Linear(2, 1)))
    with pytest.raises(WrongType, match="slope of a LayerNorm layer is not known"):
        sl.gradient_bound(torch.nn.Sequential(torch.nn.LayerNorm(2), torch.nn.Linear(2, 1)))
    with pytest.raises(WrongType, match="a Own of its own making"):
        sl.gradient_bound(Own())  # whatever it holds, a linear layer is not what it lacks
    with pytest.raises(WrongType, match="slope of a Conv1d layer is not known"):
        sl.gradient_bound(torch.nn.Sequential(torch.nn.Conv1d(1, 1, 2), torch.nn.Flatten()))
    with pytest.raises(WrongType, match="no linear layer to bound"):
        sl.gradient_bound(torch.nn.Sequential(torch.nn.ReLU()))
    with pytest.raises(WrongType, match="no bound is known for a RandomForestClassifier"):
        sl.gradient_bound(RandomForestClassifier(2).fit(X, Y))
    with pytest.raises(WrongType, match="a PoissonRegressor has coefficients, but its output"):
        sl.gradient_bound(PoissonRegressor().fit(X, Y))
    with pytest.raises(WrongType, match="probabilities of a SGDClassifier are not known to be logistic"):
        sl.gradient_bound(SGDClassifier(loss="log_loss", random_state=0).fit(X, Y))
    with pytest.raises(InvalidArgument, match="output must be 'probability' or 'margin'"):
        sl.gradient_bound(Ridge(), output="logit")


@pytest.mark.parametrize("layer", [torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(2)], ids=str)
def test_networks_in_training_mode_are_refused_as_explain_refuses_them(layer):
    """With dropout of one half gradients are twice as long as in evaluation mode, or nothing."""
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), layer, torch.nn.Linear(2, 1))
    made = sl.as_model(net.eval())
    net.train()
    messages = []
    for ask in (
        lambda: sl.explain(net, [[0.0, 0.0]]),
        lambda: sl.gradient_bound(net),
        lambda: sl.gradient_bound(made),
        lambda: sl.certify(made, [[0.0, 0.0]], sigma=1.0, gradient_bound=3.0),
    ):
        with pytest.raises(ModelError, match=r"in training mode.*Call model\.eval\(\) first") as caught:
            ask()
        messages.append(str(caught.value))
    assert len(set(messages)) == 1
    assert sl.gradient_bound(net.eval()) > 0
