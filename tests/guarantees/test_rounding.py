"""Certificates are of models as they compute, in numbers of few digits; functions here are made to round badly."""

import copy

import numpy as np
import pytest
import torch
from scipy.stats import norm
from sklearn.linear_model import LinearRegression, LogisticRegression

import smoothlime as sl
from smoothlime import errors
from smoothlime.guarantees.rounding import Reach, output_rounding, through_layer

nn = torch.nn
Z = np.linspace(-8, 8, 100_001)
WEIGHTS = Z * norm.pdf(Z) / norm.pdf(Z).sum()


def line(weight, bias):
    layer = nn.Linear(1, 1)
    nn.init.constant_(layer.weight, weight)
    nn.init.constant_(layer.bias, bias)
    return layer


def slopes(model, rows, sigma=1.0):
    """Standardised slopes E[z f(x + σz)] of a model of one feature as it computes, at points made as `explain` does."""
    model = sl.as_model(model)
    dtype = np.dtype(getattr(model, "dtype", np.float64))
    steps = (sigma * Z).astype(dtype)
    outputs = (np.asarray(model.values((dtype.type(x) + steps)[:, None]), dtype=np.float64)[:, 0] for x in rows)
    return np.array([WEIGHTS @ (each - each[len(Z) // 2]) for each in outputs])


ROWS = np.linspace(-6, 8, 57)
COARSE = {
    "one large bias": nn.Sequential(line(1e-3, 1e5)),
    "taken away again": nn.Sequential(line(1e-3, 1e5), line(1.0, -1e5)),
    "kinked": nn.Sequential(line(1e-3, 1e5), line(1.0, -1e5), nn.ReLU()),
    "batch norm": nn.Sequential(nn.BatchNorm1d(1, eps=0.0), line(1e-3, 0.0)),
    "float64": nn.Sequential(line(1e-3, 1e14)).double(),
    "bfloat16": nn.Sequential(line(1e-3, 1.0)).bfloat16(),
}
COARSE["batch norm"][0].running_mean.fill_(1e8)
for each in COARSE.values():
    each.eval()


@pytest.mark.filterwarnings("ignore::smoothlime.errors.LostPrecision")
@pytest.mark.parametrize("name", COARSE)
def test_no_network_moves_more_than_its_gradient_and_its_rounding_allow(name):
    """A gradient of 1e-3 at most allows a change of 0.002; a bias of 1e5 in float32 makes it 0.003."""
    net = COARSE[name]
    certificate = sl.certify(net, ROWS[:, None], sigma=1.0, gradient_bound=1e-3 * (1 + 1e-2))
    found = slopes(net, ROWS)
    allowed = certificate.bound(ROWS[-1] - ROWS[0])
    assert np.ptp(found) > 2 * 1.02e-3  # without its rounding it would be broken
    assert np.ptp(found) <= allowed.min()
    assert "of rounding" in str(certificate)
    for step in (1, 4):
        assert (np.abs(found[step:] - found[:-step]) <= certificate.bound(ROWS[step] - ROWS[0])[:-step]).all()


def test_rounding_is_counted_for_linear_models_too():
    model = LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0])
    model.coef_, model.intercept_ = np.array([1e-3]), 1e14
    certificate = sl.certify(model, ROWS[:, None], sigma=1.0, gradient_bound=sl.gradient_bound(model))
    assert 2e-3 < np.ptp(slopes(model, ROWS)) <= certificate.bound(14.0).min()
    e = sl.explain(model, ROWS[:, None], sigma=1.0)
    assert e.is_exact
    assert (np.abs(e.standardised[:, 0] - slopes(model, ROWS)) <= e.radius).all()
    assert "but for rounding" in e.provenance.assumes


ACTIVATIONS = [
    nn.ReLU(), nn.ReLU6(), nn.Tanh(), nn.Sigmoid(), nn.Softsign(), nn.Softplus(2.0, 20.0), nn.LogSigmoid(),
    nn.CELU(0.3), nn.Hardtanh(), nn.Hardsigmoid(), nn.Hardswish(), nn.SELU(), nn.SiLU(), nn.GELU(), nn.GELU("tanh"),
    nn.Mish(), nn.ELU(1.7), nn.LeakyReLU(1.3), nn.Identity(), nn.Softmax(dim=1), nn.BatchNorm1d(5),
]  # fmt: skip


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("activation", ACTIVATIONS, ids=str)
def test_outputs_are_within_what_rounding_is_said_to_move_them(activation, kind):
    """Against the same network and points in float64, for biases that are large next to what matters."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    x, sigma = 10 * rng.normal(size=(1, 4)), np.array([1.0, 0.5, 0.1, 2.0])
    factor = sl.Neighbourhood(sigma).factor(4)
    z = rng.standard_normal((2_000, 4))
    points = x + sigma * z
    for bias in (0.1, 30.0):
        net = nn.Sequential(nn.Linear(4, 5), activation, nn.Linear(5, 5), activation, nn.Linear(5, 2)).to(kind).eval()
        for layer in (net[0], net[2]):
            layer.bias.data.mul_(bias)
        for output in (None, "probability"):
            rounded = np.asarray(sl.as_model(net, output=output).values(points), dtype=np.float64)
            error = output_rounding(sl.as_model(net, output=output), x, factor, torch.finfo(kind).eps)
            net.double()
            apart = np.abs(rounded - sl.as_model(net, output=output).values(points)).max(axis=1)
            net.to(kind)
            if error is None:  # in bfloat16 a Softplus jumps by more than its spacing: nothing is promised
                assert isinstance(activation, nn.Softplus)
                continue
            allowed = error[0] + error[1] * np.abs(z).max(axis=1)
            assert (apart <= allowed).all()
            assert apart.max() > 0


def test_networks_whose_layers_are_not_known_are_refused_in_few_digits():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = line(1e-3, 1e5)

        def forward(self, a):
            return self.layer(a)

    own, question = Own().eval(), {"sigma": 1.0, "gradient_bound": 1e-3}
    with pytest.raises(errors.InvalidArgument, match=r"gradient_bound says nothing of rounding.*module\.double\(\)"):
        sl.certify(own, [[0.0]], **question)
    e = sl.explain(own, [[0.0]], method="clime", n_samples=64)
    with pytest.raises(errors.InvalidArgument, match=r"gradient_bound says nothing of rounding.*Give the model, too"):
        sl.certify(None, e, gradient_bound=1e-3)
    # any outputs between two numbers have their certificate, rounded or not
    assert len(sl.certify(own, [[0.0]], sigma=1.0, output_range=(0, 2e5))) == 1
    for model in (own.double(), None, lambda a: a[:, 0]):
        assert sl.certify(model, [[0.0]], **question).assumes.endswith("no jumps, outputs that are not rounded")
    known = sl.certify(COARSE["kinked"], [[0.0]], **question)
    assert "not rounded" not in known.assumes


def test_matrices_that_may_be_multiplied_coarsely_are_counted_so():
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).eval()
    question = {"X": np.zeros((1, 3)), "sigma": 1.0, "gradient_bound": 2.0}
    exact, before = sl.certify(net, **question).rounding[0], torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        coarse = sl.certify(net, **question).rounding[0]
    finally:
        torch.set_float32_matmul_precision(before)
    assert coarse > 1e4 * exact
    under = sl.certify(sl.as_model(net, autocast="bfloat16"), **question).rounding[0]
    assert under > 1e4 * exact


def test_rows_that_are_rounded_apart_are_as_far_apart_as_that():
    """Next to 1e8 numbers of float32 are 8 apart, so that two rows 0.002 apart may be 8 apart."""

    class Step:
        outputs, dtype, output_range = ("p",), np.dtype(np.float32), (0.0, 1.0)

        def values(self, points):
            return (points[:, :1] > 1e8 + 100).astype(np.float32)

    rows, sigma = np.array([1e8 + 3.999, 1e8 + 4.001]), 100.0
    change = abs(np.diff(slopes(Step(), rows, sigma)))[0]
    with pytest.warns(errors.LostPrecision):
        certificate = sl.certify(Step(), rows[:, None], sigma=sigma)
    assert 1_000 * 0.48394 * np.diff(rows)[0] / sigma < change <= certificate.bound(np.diff(rows)[0] / sigma)[0]
    assert (certificate.bound(0) == 0).all()  # the same row rounds the same way
    assert (certificate.radius(change / 2) == 0).all()


@pytest.mark.parametrize("covariance", [np.eye(2), [[1.0, 0.9], [0.9, 1.0]]], ids=["diagonal", "full"])
def test_contrasts_and_full_covariances_round_too(covariance):
    """Slopes of 1e-3·(a + b) + 1e5 less 1e5, by least squares on 200,000 draws, of standard error 1e-5."""
    net = nn.Sequential(nn.Linear(2, 2)).eval()
    net[0].weight.data.copy_(torch.tensor([[1e-3, 1e-3], [0.0, 0.0]]))
    net[0].bias.data.fill_(1e5)
    rows, target = np.array([[0.0, 0.0], [1.95, 1.95]]), {0: 1, 1: -1}
    around = sl.Neighbourhood(covariance=np.asarray(covariance))
    e = sl.explain(net, rows, sigma=around, target=target, method="clime", design="iid", n_samples=200_000)
    certificate = sl.certify(net, rows, sigma=around, target=target, gradient_bound=1.5e-3)
    distance = np.sqrt(rows[1] @ np.linalg.solve(covariance, rows[1]))
    moved = np.linalg.norm(np.diff(e.standardised, axis=0))
    flat = 2 * 1.5e-3 * 2  # all that gradients allow, of both outputs together
    assert moved <= certificate.bound(distance)[0]
    assert certificate.rounding[0] > moved / 4 > 1e-4
    assert certificate.bound(distance)[0] > flat / 2


class TestSmoothGrad:
    def test_a_certificate_from_gradients_counts_the_spacings_of_outputs(self):
        """Gradients are 1e-3 everywhere, and the slope is anything between 0 and 0.003."""
        net = COARSE["one large bias"]
        e = sl.explain(net, ROWS[:, None], guarantee="certified", gradient_bound=1.01e-3, n_samples=4_096)
        off = np.abs(e.standardised[:, 0] - slopes(net, ROWS))
        assert off.max() > 1e-3
        assert (off <= e.radius).all()
        assert "rounding moves by at most 64 spacings of its output" in e.provenance.assumes

    def test_what_is_rounded_on_the_way_is_found_by_values(self):
        with pytest.raises(errors.ModelError, match="No certificate from them holds"):
            sl.explain(
                COARSE["taken away again"], [[0.0]], guarantee="certified", gradient_bound=1.01e-3, n_samples=4_096
            )

    @pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16], ids=str)
    def test_few_digits_are_refused(self, kind):
        net = nn.Sequential(nn.Linear(2, 1)).to(kind).eval()
        question = {"guarantee": "certified", "n_samples": 256}
        with pytest.raises(errors.InvalidArgument, match=r"a model that computes in float32 or float64.*float\(\)"):
            sl.explain(net, [[0.0, 0.0]], gradient_bound=5.0, **question)
        by_autocast = sl.as_model(net.float(), autocast=str(kind).removeprefix("torch."))
        with pytest.raises(errors.InvalidArgument, match="needs a model that computes in float32 or float64"):
            sl.explain(by_autocast, [[0.0, 0.0]], gradient_bound=5.0, **question)
        assert sl.explain(by_autocast, [[0.0, 0.0]], output_range=(-50, 50), method="clime", **question).radius[0] > 0

    def test_a_network_of_one_hidden_layer_pays_next_to_nothing(self):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1)).eval()
        bound = sl.gradient_bound(net)
        certificate = sl.certify(net, np.zeros((1, 10)), sigma=0.5, gradient_bound=bound)
        assert certificate.rounding[0] < 1e-3 * certificate.lipschitz[0]
        in_double = sl.certify(net.double(), np.zeros((1, 10)), sigma=0.5, gradient_bound=bound)
        assert in_double.rounding[0] < 1e-8 * certificate.rounding[0]
        assert "of rounding" not in str(in_double)


def test_probabilities_of_linear_models_round_by_little():
    points = np.random.default_rng(0).normal(size=(100, 3))
    for classes in (2, 3):
        model = LogisticRegression().fit(points, np.arange(100) % classes)
        error = output_rounding(sl.as_model(model), points, sl.Neighbourhood().factor(3), 2.0**-52)
        assert 0 < error.max() < 1e-13
    assert output_rounding(sl.as_model(lambda a: a), points, sl.Neighbourhood().factor(3), 2.0**-52) is None


def test_a_slope_that_rounding_made_is_no_contradiction():
    """One step of 0.0078 in sight: a slope of 0.003, though no gradient is longer than 0.001."""
    net = COARSE["one large bias"]
    e = sl.explain(net, [[3.906]], method="clime", n_samples=4_096)
    assert e.standardised[0, 0] > 2e-3
    assert len(sl.certify(net, e, gradient_bound=1.01e-3)) == 1


def test_an_explanation_in_few_digits_stays_one_where_the_model_has_more_by_now():
    net = copy.deepcopy(COARSE["one large bias"])
    e = sl.explain(net, [[0.0], [3.906]], method="clime", n_samples=4_096)
    before = sl.certify(net, e, gradient_bound=1.01e-3)
    np.testing.assert_allclose(sl.certify(net.double(), e, gradient_bound=1.01e-3).rounding, before.rounding)


def test_plans_from_gradients_assume_that_nothing_is_rounded():
    planned = sl.plan("smoothgrad", eps=0.05, sigma=1.0, gradient_bound=1.0)
    assert "a model without jumps or rounding" in planned.assumes


@pytest.mark.parametrize("kind", [torch.bfloat16], ids=str)
class TestOneLayer:
    """Of numbers that are exact on the way in, so that all that is lost is lost in the layer."""

    NUMBERS = torch.linspace(-40, 40, 20_001)

    def lost(self, layer, numbers):
        """(n, 1) by how much outputs in few digits are off, and the numbers exactly."""
        exact = numbers.double()
        rounded = layer(numbers).double()
        return (rounded - layer.double()(exact)).abs().detach().numpy(), exact.abs().numpy()

    def unit(self, kind):
        return float(torch.finfo(kind).eps) / 2

    @pytest.mark.parametrize("activation", ACTIVATIONS[:-2], ids=str)
    def test_curves(self, activation, kind):
        if isinstance(activation, nn.Softplus):
            activation = nn.Softplus(2.0, 40.0)  # of which no jump is to be seen
        off, size = self.lost(activation, self.NUMBERS.to(kind)[:, None])
        size = np.concatenate([size, [[0.0]]])
        allowed = through_layer(Reach(size, np.zeros_like(size)), activation, self.unit(kind)).error[:-1]
        assert (off <= allowed).all()

    def test_softmax(self, kind):
        numbers = self.NUMBERS[torch.randperm(20_000, generator=torch.Generator().manual_seed(0))].reshape(-1, 20)
        off, size = self.lost(nn.Softmax(dim=1), numbers.to(kind))
        size = np.concatenate([size, 0 * size[:1]])
        allowed = Reach(size, np.zeros_like(size)).softmax(self.unit(kind)).error[:-1]
        assert (off <= allowed).all()
        assert off.max() > 0.1 * self.unit(kind)

    def test_batch_norm(self, kind):
        layer = nn.BatchNorm1d(1).eval()
        layer.running_mean.fill_(37.0)
        layer.running_var.fill_(0.3)
        off, size = self.lost(layer.to(kind), self.NUMBERS.to(kind)[:, None])
        size = np.concatenate([size, [[0.0]]])
        allowed = through_layer(Reach(size, np.zeros_like(size)), layer, self.unit(kind)).error[:-1]
        assert (off <= allowed).all()
        assert off.max() > 10 * self.unit(kind)

    def test_sums(self, kind):
        torch.manual_seed(0)
        layer = nn.Linear(20, 3).to(kind)
        off, size = self.lost(layer, self.NUMBERS[:20_000].reshape(-1, 20).to(kind))
        size = np.concatenate([size, 0 * size[:1]])
        allowed = through_layer(Reach(size, np.zeros_like(size)), layer, self.unit(kind)).error[:-1]
        assert (off <= allowed).all()
        assert off.max() > 10 * self.unit(kind)

    def test_points(self, kind):
        """The model is asked at x + step in its own numbers, and returns them as they are."""
        net = nn.Sequential(nn.Linear(1, 1), nn.Identity()).to(kind).eval()
        nn.init.ones_(net[0].weight)
        nn.init.zeros_(net[0].bias)
        x, sigma, z = 1_000.3, 50.7, np.random.default_rng(0).standard_normal(2_000)
        points = np.float32(x) + (sigma * z).astype(np.float32)
        off = np.abs(np.asarray(sl.as_model(net).values(points[:, None]), dtype=float)[:, 0] - (x + sigma * z))
        factor = sl.Neighbourhood(sigma).factor(1)
        start = output_rounding(sl.as_model(net), np.array([[x]]), factor, torch.finfo(kind).eps)
        sums = through_layer(Reach(np.array([[x], [sigma]]), np.zeros((2, 1))), net[0], self.unit(kind)).error[:, 0]
        assert (off <= start[0] - sums[0] + (start[1] - sums[1]) * np.abs(z)).all()
        assert off.max() > 0.3 * self.unit(kind) * x


def test_a_clip_whose_ends_are_far_from_0_counts_what_comes_of_it():
    """Hardtanh(1, 2) turns 0 into 1, which the next layer multiplies by a million and rounds: 1.8 times the bound."""
    net = nn.Sequential(nn.Linear(1, 2), nn.Hardtanh(1.0, 2.0), nn.Linear(2, 1))
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[0.0], [1.0]]))
        net[2].weight.copy_(torch.tensor([[1e6, 1.0]]))
        for layer in (net[0], net[2]):
            layer.bias.zero_()
    rows = 1.4 + np.linspace(-0.01, 0.01, 41)
    certificate = sl.certify(net.eval(), rows[:, None], sigma=0.01, gradient_bound=1.0)
    found = slopes(net, rows, sigma=0.01)
    assert np.ptp(found) > (certificate.bound(2.0) - certificate.rounding).max()  # without its rounding
    assert np.ptp(found) <= certificate.bound(2.0).min()


@pytest.mark.filterwarnings("ignore::smoothlime.errors.LostPrecision")
def test_float16_is_refused_as_numbers_leave_its_range():
    """An inner infinity came back as 1 through a tanh: 4.4 times the bound."""
    net = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1), nn.Tanh()).eval()
    for model in (sl.as_model(copy.deepcopy(net), autocast="float16"), copy.deepcopy(net).half()):
        with pytest.raises(
            errors.InvalidArgument, match=r"gradient_bound says nothing of rounding.*module\.double\(\)"
        ):
            sl.certify(model, [[65.5]], sigma=1.0, gradient_bound=0.0102)
    with torch.no_grad():
        net[0].weight.fill_(1e36)
    with pytest.raises(errors.InvalidArgument, match="gradient_bound says nothing of rounding"):
        sl.certify(net, [[65.5]], sigma=1.0, gradient_bound=1e36)
    assert sl.certify(net.double(), [[65.5]], sigma=1.0, gradient_bound=1e36).lipschitz[0] > 0
