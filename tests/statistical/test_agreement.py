"""The test keeps its level, finds what it should, affirms no more often than it may, and says why."""

import numpy as np
import pytest
import torch

import smoothlime as sl
from smoothlime import errors
from smoothlime import testing as known
from smoothlime.sampling.diagnostics import ANY_AMOUNT, _heaviness
from smoothlime.uncertainty.stopping import BELIEVED_CONSTANT


def network(d, seed, activation=torch.nn.ELU):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return torch.nn.Sequential(torch.nn.Linear(d, 10), activation(), torch.nn.Linear(10, 1)).double().eval()


class Wrapped(torch.nn.Module):
    """A network with something done to its output, seen or not seen by its gradients."""

    def __init__(self, inner, how):
        super().__init__()
        self.inner, self.how = inner, how

    def forward(self, a):
        return self.how(self.inner, a)


def rejections(d, n, repeats, activation, alpha=0.05):
    """Share of independent seeds for which a smooth network is found to disagree with itself."""
    found = []
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        net = network(d, seed % 20, activation)
        found.append(sl.agreement(net, rng.normal(size=d), sigma=0.7, n_samples=n, seed=seed).p_value[0] <= alpha)
    return np.mean(found)


@pytest.mark.slow
@pytest.mark.parametrize("activation", [torch.nn.ELU, torch.nn.ReLU])
@pytest.mark.parametrize(("d", "n"), [(2, 200), (10, 1_000)])
def test_hotelling_keeps_its_level(d, n, activation):
    repeats = 600
    share = rejections(d, n, repeats, activation)
    error = 3 * np.sqrt(0.05 * 0.95 / repeats)
    assert 0.05 - error - 0.01 <= share <= 0.05 + error


@pytest.mark.slow
def test_the_largest_t_keeps_its_level():
    assert rejections(30, 140, 300, torch.nn.ELU) <= 0.07 + 2 * np.sqrt(0.07 * 0.93 / 300)


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [
        lambda inner, a: torch.round(inner(a) * 256) / 256 + 0 * inner(a),
        lambda inner, a: inner(a) + 0.2 * (a[:, :1] > 0.3),
    ],
    ids=["256 levels", "step"],
)
def test_steps_are_found(how):
    found = [
        sl.agreement(Wrapped(network(4, seed), how), np.zeros(4), sigma=0.7, n_samples=1_000, seed=seed).agrees[0]
        for seed in range(60)
    ]
    assert np.mean([each is False for each in found]) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 4])
def test_equality_is_affirmed_no_more_often_than_it_may_be(d):
    """At the boundary: gradients that are off by exactly the margin, along the slope and across it. Right ones are."""
    v = np.ones(d) / np.sqrt(d)
    f = known.Sine(v, 0.4)
    truth = f.slopes(np.zeros((1, d)), sl.Neighbourhood(1.0))[0]
    across = np.roll(np.eye(d)[0], 1) - np.eye(d)[0] if d > 1 else np.zeros(1)
    for direction in (truth, across):
        if not direction.any():
            continue
        offset = 0.2 * np.linalg.norm(truth) * direction / np.linalg.norm(direction)
        model = sl.from_functions(values=f.values, gradients=lambda a, o=offset: f.values_and_gradients(a, 1.0)[1] + o)
        assert _affirmed(model, d, 400) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
    assert _affirmed(f, d, 40) >= 0.9


def _affirmed(model, d, repeats):
    asked = {"n_samples": 1_000, "margin": 0.2}
    return np.mean([sl.agreement(model, np.zeros(d), seed=seed, **asked).agrees[0] is True for seed in range(repeats)])


class TestDiagnosis:
    def diagnose(self, model, **more):
        found = sl.agreement(model, [[0.1, -0.2, 0.3]], sigma=0.7, **{"n_samples": 2_000, **more})
        assert found.agrees == (False,)
        assert found.verdict.startswith("disagree: ")
        assert "use predictions" in found.verdict
        return found

    def test_piecewise_constant_output(self):
        found = self.diagnose(known.Step([1.0, 0.5, 0.2]))
        assert "piecewise constant" in found.diagnosis[0]
        assert set(found.features[0]) <= {"x0", "x1", "x2"}
        assert "x0" in found.features[0]

    def test_a_detached_branch(self):
        only = Wrapped(network(3, 0), lambda inner, a: torch.sin(a[:, :1].detach()) + torch.sin(a[:, 1:2]))
        found = self.diagnose(only)
        assert found.diagnosis[0].startswith(
            "the gradient of 'x0' is zero although the output follows it"
        )  # x2 is unused
        beside = Wrapped(network(3, 0), lambda inner, a: inner(a) + torch.sin(2 * a[:, :1].detach()))
        assert self.diagnose(beside).features[0] == ("x0",)

    def test_a_fully_detached_output(self):
        model = Wrapped(network(3, 0), lambda inner, a: torch.sin(a.detach().sum(1)) + 0 * a.sum(1))
        assert "detached from the input" in self.diagnose(model).diagnosis[0]

    def test_hard_rounding(self):
        model = Wrapped(network(3, 0), lambda inner, a: torch.round(20 * inner(a)) / 20 + 0 * inner(a))
        assert "piecewise constant" in self.diagnose(model).diagnosis[0]

    def test_rounding_beside_something_smooth(self):
        model = Wrapped(network(3, 0), lambda inner, a: torch.round(5 * inner(a)) + 0.01 * a[:, :1])
        assert "gradient of 'x1', 'x2' is zero" in self.diagnose(model).diagnosis[0]

    def test_gradients_of_another_output(self):
        f, g = known.Sine([1.0, 0.0, 0.3]), known.Sine([0.0, 1.0, -0.5], 0.4)
        model = sl.from_functions(
            values=lambda a: np.column_stack([f.values(a), g.values(a)]),
            gradients=lambda a: np.stack([g.values_and_gradients(a, 1.0)[1]] * 2, axis=1),
            outputs=("one", "other"),
        )
        assert "those of output 'other': a wrong target" in self.diagnose(model, target="one").diagnosis[0]

    def test_gradients_in_other_units(self):
        f = known.Sine([1.0, 0.4, 0.3])
        model = sl.from_functions(values=f.values, gradients=lambda a: -f.values_and_gradients(a, 1.0)[1])
        assert "a wrong sign or unit" in self.diagnose(model).diagnosis[0]


def test_linear_models_are_equal_without_an_inverse():
    found = sl.agreement(known.Linear([1.0, 2.0]), np.zeros((3, 2)), n_samples=500)
    assert found.agrees == (True, True, True)
    assert (found.p_value == 1).all()
    assert found.verdict == "agree within 0.1%"


def test_smooth_networks_agree():
    found = sl.agreement(network(3, 0), np.zeros((2, 3)), sigma=0.3, n_samples=4_000)
    assert found.agrees == (True, True)
    assert found.verdict.startswith("agree within")
    assert "approximate" in str(found)


def test_few_samples_cannot_tell():
    found = sl.agreement(network(3, 0), np.zeros(3), sigma=1.5, n_samples=40)
    assert found.agrees == (None,)
    assert found.verdict.startswith("not enough samples to tell")
    assert str(found).startswith("Not enough samples to tell: they may differ by ")


def test_rows_that_repeat_and_full_neighbourhoods_are_fine():
    """Of smooth networks in a full neighbourhood none is denied, most are affirmed, and rows alike are judged alike."""
    around = sl.Neighbourhood(covariance=[[1.0, 0.8, 0.0], [0.8, 1.0, 0.1], [0.0, 0.1, 0.5]])
    agrees = []
    for seed in range(20):
        found = sl.agreement(network(3, seed), np.zeros((2, 3)), sigma=around, n_samples=8_000, seed=seed)
        np.testing.assert_allclose(found.p_value[0], found.p_value[1])
        assert found.agrees[0] is found.agrees[1]
        agrees.append(found.agrees[0])
    assert False not in agrees
    assert agrees.count(True) >= 16


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"n_samples": 4}, errors.InvalidArgument, r"n_samples=4 is too few for 3 features: .* at least 6"),
        ({"alpha": 0}, errors.InvalidArgument, r"alpha must lie strictly between 0 and 1"),
        ({"margin": -0.1}, errors.InvalidArgument, r"margin must be finite and >= 0"),
    ],
)
def test_bad_input(arguments, kind, message):
    with pytest.raises(kind, match=message):
        sl.agreement(known.Sine([1.0, 0.0, 0.0]), np.zeros(3), **arguments)


def test_a_difference_without_scatter_is_a_difference():
    model = sl.from_functions(values=lambda a: np.zeros(len(a)), gradients=np.ones_like)
    assert sl.agreement(model, [0.0, 0.0]).agrees == (False,)


@pytest.mark.slow
def test_heavy_tails_are_not_taken_for_lies():
    """Gradients of exp(2s) are right; plain Hotelling rejects them in a third of all runs."""
    for d in (2, 10):
        u = np.ones(d) / np.sqrt(d)
        rejected = [
            sl.agreement(known.Exponential(2 * u), np.zeros(d), n_samples=2_000, seed=seed).agrees[0] is False
            for seed in range(200)
        ]
        assert np.mean(rejected) <= 0.07


def test_skewed_differences_count_for_less():
    """Of 100 terms, 10 are 9 and the others −1: of skewness 8/3."""
    terms = np.where(np.arange(100) < 10, 9.0, -1.0)
    second_order = (8 / 3) ** 2 * (2.5**4 + 2 * 2.5**2 - 3) / (18 * 100)
    assert _heaviness(terms, 100) == pytest.approx(1 + 2 * second_order, rel=1e-3)
    assert _heaviness(-terms, 100) == _heaviness(terms, 100)
    assert _heaviness(np.array([1.0, -1.0]), 2) == _heaviness(np.zeros(5), 5) == 1.0


def test_a_nearly_linear_output_with_the_wrong_gradients():
    f = known.Linear([2.0, 1.0])
    model = sl.from_functions(values=f.values, gradients=lambda a: np.full(a.shape, [2.0, 1.5]))
    assert "not those of this output" in sl.agreement(model, [0.0, 0.0]).diagnosis[0]


def test_models_without_gradients_cannot_be_compared():
    with pytest.raises(errors.NoGradients, match="a function has no gradients to compare"):
        sl.agreement(lambda a: a[:, 0], np.zeros(3))


def test_more_features_than_draws_is_an_error_that_names_the_fewest():
    with pytest.raises(errors.InvalidArgument, match="least squares needs at least 53 draws"):
        sl.agreement(known.Linear(np.ones(50)), np.zeros(50), n_samples=20)


def test_a_model_that_no_draw_saw_change_is_not_affirmed():
    """A step 3.4 σ away, whose gradients are 0: about half of the runs meet it with no draw at all."""
    step = sl.from_functions(values=lambda a: (a[:, 0] > 3.4) * 1.0, gradients=np.zeros_like)
    found = [sl.agreement(step, [0.0, 0.0], sigma=1.0, seed=seed) for seed in range(20)]
    assert any(each.within[0] == ANY_AMOUNT for each in found)
    assert all(each.agrees == (None,) for each in found)
    unseen = next(each for each in found if each.within[0] == ANY_AMOUNT)
    assert unseen.verdict == "not enough samples to tell: they may differ by any amount"


def test_a_constant_model_is_believed_after_as_many_draws_as_everywhere():
    constant = sl.from_functions(values=lambda a: np.full(len(a), 2.0), gradients=np.zeros_like)
    assert sl.agreement(constant, [0.0, 0.0], n_samples=BELIEVED_CONSTANT - 1).agrees == (None,)
    assert sl.agreement(constant, [0.0, 0.0], n_samples=BELIEVED_CONSTANT).agrees == (True,)
