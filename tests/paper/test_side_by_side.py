"""The related work on a network whose truth is known, and the bookkeeping around it."""

import json

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

import smoothlime as sl
from smoothlime.draws.designs import DESIGNS
from smoothlime.draws.rotation import PILOTS
from smoothlime.errors import SmoothlimeError
from smoothlime.paper.peers import BACKGROUND, everyone, global_seed, pose
from smoothlime.paper.side_by_side import Answers, measures, panels, rank_correlations, side_by_side

NAMES = ["gradient", "integrated gradients", "gradient SHAP", "kernel SHAP", "LIME", "SmoothGrad", "C-LIME"]
STEPS = 50
"""Of integrated gradients."""


def logistic(weights, outputs=2):
    """A network whose probability is a sigmoid of weights·x: every gradient is a multiple of the weights."""
    layer = torch.nn.Linear(len(weights), outputs).double()
    with torch.no_grad():
        layer.weight[:] = 0
        layer.weight[-1] = torch.as_tensor(weights)
        layer.bias[:] = 0
    return layer.eval()


def curved(d):
    with torch.random.fork_rng():
        torch.manual_seed(1)
        layers = [torch.nn.Linear(d, 12), torch.nn.Tanh(), torch.nn.Linear(12, 2)]
        net = torch.nn.Sequential(*layers).eval()
    with torch.no_grad():
        net[0].weight *= 3
        net[2].weight *= 3
    return net


def training_rows(d, n=400):
    rows = np.random.default_rng(8).normal(size=(n, d))
    return (rows - rows.mean(axis=0)) / rows.std(axis=0)


def compare(net, rows, **settings):
    d = rows.shape[1]
    settings = {"target": 1, "sigma": 0.3, "seeds": 3, "n_samples": 150, "neighbours": 2} | settings
    return side_by_side(
        sl.as_model(net, output="probability"),
        training_rows(d),
        rows,
        feature_names=[f"f{j}" for j in range(d)],
        **settings,
    )


def test_a_seed_of_any_size_will_do():
    rows = training_rows(3)[:2]
    found = compare(curved(3), rows, seed=2**32 - 1, seeds=2, n_samples=40, neighbours=1)
    again = compare(curved(3), rows, seed=2**32 - 1, seeds=2, n_samples=40, neighbours=1)
    assert found["stability"] == again["stability"]
    assert all(value > 0 for name, value in zip(found["methods"], found["stability"], strict=True) if "LIME" in name)


def global_states():
    return np.random.get_state(), torch.get_rng_state()  # noqa: NPY002  # what shap and captum draw from


def assert_same_states(before, after):
    np.testing.assert_array_equal(before[0][1], after[0][1])
    assert before[0][2:] == after[0][2:]  # position in the block, and the normal draw kept back
    assert torch.equal(before[1], after[1])


@pytest.fixture(scope="module")
def bent():
    """Eight features: 150 draws are fewer than the 254 coalitions, so kernel SHAP has to sample."""
    np.random.random(), torch.rand(1)  # noqa: NPY002  # away from where an earlier seed may have left the states
    before = global_states()
    net, points = curved(8), []
    hook = net.register_forward_pre_hook(lambda _, given: points.append(len(given[0])))
    data = compare(net, training_rows(8)[:4])
    hook.remove()
    return data, sum(points), before, global_states()


def test_all_methods_rank_the_features_of_a_logistic_model_alike():
    # every |x| is the same, so that contributions w·(x − 0) rank like the slopes w
    signs = np.where(np.random.default_rng(2).random((4, 5)) < 0.5, -1.0, 1.0)
    data = compare(logistic(2.0 * 0.55 ** np.arange(5)), 1.2 * signs, n_samples=2_000)
    assert data["methods"] == NAMES
    assert np.min(data["agreement_rank"]) > 0.95
    ours = np.array(data["agreement_l1"])[np.ix_([0, 5, 6], [0, 5, 6])]  # gradient, SmoothGrad, C-LIME: all ∝ w
    assert ours[0, 1] < 1e-9
    assert ours[1, 2] < 0.02
    others = np.array(data["agreement_l1"])[1:5, 1:5]  # contributions, all of about the sign of w·x
    assert others.max() < 0.6


def test_a_single_output_is_the_probability_of_the_class():
    weights, rows = np.array([1.0, -0.5, 0.25]), training_rows(3)[:2]
    one, two = compare(logistic(weights, 1), rows, target=0), compare(logistic(weights), rows, target=1)
    np.testing.assert_allclose(one["agreement_l1"], two["agreement_l1"], atol=1e-9)


def test_smoothgrad_and_clime_agree_more_closely_than_any_other_pair_of_slope_and_contribution(bent):
    distance = np.array(bent[0]["agreement_l1"])
    assert distance[5, 6] < distance[np.ix_([0, 5, 6], [1, 2, 3, 4])].min()


def test_only_methods_without_draws_give_the_same_answer_for_every_seed(bent):
    steady = dict(zip(NAMES, bent[0]["stability"], strict=True))
    assert steady["gradient"] < 1e-14
    assert steady["integrated gradients"] < 1e-14
    for name in NAMES[2:]:
        assert steady[name] > 1e-3, name
    assert bent[0]["top1_changes"][:2] == [0.0, 0.0]


def test_kernel_shap_with_every_coalition_has_no_chance_left():
    data = compare(curved(4), training_rows(4)[:2], n_samples=100)
    assert data["stability"][3] < 1e-14
    assert "nsamples=14, all there are" in data["settings"]["kernel SHAP"]
    assert data["evaluations"][3] == 1 + 14 * BACKGROUND


def test_evaluations_are_those_that_reach_the_network(bent):
    data, points, *_ = bent
    ours = [DESIGNS["aligned"].whole(150, 8) + PILOTS[1] + 2, DESIGNS["orthogonal"].whole(150, 8) + 2]
    ours = [each + 3 / data["rows"] for each in ours]  # the first row was asked beside two probe points too
    assert data["evaluations"] == [1, STEPS, 150, 1 + 150 * BACKGROUND, 150, *ours]
    explanations = data["rows"] * (data["seeds"] + data["neighbours"]) + 1  # one to warm up
    about_rows = 1  # how many outputs there are
    alone = 2 * (3 - 3 / data["rows"])  # so was the row to warm up with, by both of ours
    assert points == sum(data["evaluations"]) * explanations + BACKGROUND + about_rows + alone


def test_global_random_states_are_left_as_they_were(bent):
    _, _, before, after = bent
    assert_same_states(before, after)


def test_global_random_states_come_back_after_an_error_too():
    def draw_and_fail():
        with global_seed(5):
            drawn.append((np.random.random(), torch.rand(1).item()))  # noqa: NPY002  # the state in question
            raise ZeroDivisionError

    drawn, before = [], global_states()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            draw_and_fail()
    assert drawn[0] == drawn[1]
    assert_same_states(before, global_states())


def test_an_answer_depends_on_its_row_and_seed_alone():
    rows = training_rows(8)[:3]
    question, _ = pose(
        sl.as_model(curved(8), output="probability"), training_rows(8), target=1, sigma=0.3,
        feature_names=tuple("abcdefgh"), n_samples=150, seed=0,
    )  # fmt: skip
    for method in everyone(question):
        together = method.attribute(rows, 3)
        alone = method.attribute(rows[1:2], 3)
        np.testing.assert_allclose(together[1:2], alone, atol=1e-6, err_msg=method.name)


def test_a_neighbour_at_no_distance_has_the_same_explanation():
    data = compare(curved(8), training_rows(8)[:2], spread=0.0)
    np.testing.assert_allclose(data["robustness"], 0, atol=1e-12)


def test_contributions_add_up_where_their_packages_say_so():
    rows = training_rows(8)[:2]
    question, _ = pose(
        sl.as_model(curved(8).double(), output="probability"), training_rows(8), target=1, sigma=0.3,
        feature_names=tuple("abcdefgh"), n_samples=150, seed=0,
    )  # fmt: skip
    by_name = {method.name: method.attribute(rows, 0).sum(axis=1) for method in everyone(question)}
    here, at_zero = question.probability(rows), question.probability(np.zeros((1, 8)))
    np.testing.assert_allclose(by_name["integrated gradients"], here - at_zero, atol=1e-3)
    np.testing.assert_allclose(by_name["kernel SHAP"], here - question.probability(question.background).mean())


def test_the_same_seed_gives_the_same_data():
    rows = training_rows(4)[:2]
    one, two = (compare(curved(4), rows, n_samples=60, seed=4) for _ in range(2))
    del one["seconds"], two["seconds"]
    assert one == two


def test_rank_correlations_are_spearmans():
    sizes = np.random.default_rng(0).random((3, 4, 6))
    sizes[0, 0, :2] = 0.5  # a tie
    found = rank_correlations(sizes)
    for row in range(4):
        np.testing.assert_allclose(found[:, :, row], spearmanr(sizes[:, row].T).statistic)


def test_measures_of_answers_made_by_hand():
    # two seeds, two rows, two features: the first row moves from (1, 0) to (0, 1), the second stays at (½, ½)
    by_seed = np.array([[[2.0, 0.0], [3.0, 3.0]], [[0.0, 5.0], [1.0, 1.0]]])
    nearby = np.array([[[1.0, 0.0], [0.5, -0.5]], [[1.0, 1.0], [1.0, 1.0]]])
    found = measures([Answers(by_seed, nearby, 1.0, 1.0)])
    spread = 2 * np.sqrt(0.5)
    assert found["stability"] == pytest.approx([spread / 2])
    assert found["stability_se"] == pytest.approx([spread / 2])
    assert found["top1_changes"] == [0.5]
    assert found["robustness"] == [0.5]  # (1 + 0)/2: from (1, 0) to (½, −½), and nothing


def test_rows_without_a_shape_are_left_out_and_counted():
    some = np.array([[1.0, 2.0], [0.0, 0.0], [2.0, 1.0]])
    whole = np.array([[1.0, 2.0], [1.0, 3.0], [2.0, 1.0]])
    flat = np.zeros((3, 2))
    found = measures([Answers(np.stack([a, a]), a[:, None], 1.0, 1.0) for a in (some, whole, flat)])
    assert found["flat_rows"] == [1, 0, 3]
    assert found["agreement_rank"][0][1] == pytest.approx(1.0)
    assert found["agreement_rank"][0][2] is None
    assert found["stability"] == [0.0, 0.0, None]
    assert found["top1_changes"] == [0.0, 0.0, None]


def test_the_result_is_plain_data_with_standard_errors(bent):
    data = bent[0]
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    for measure in ("agreement_rank", "agreement_l1", "stability", "top1_changes", "robustness"):
        assert np.shape(data[measure]) == np.shape(data[f"{measure}_se"])
    assert set(data["settings"]) == set(NAMES)
    assert all("4 rows" in each for each in data["settings"].values())
    assert "different questions" in data["notes"][0]


def test_panels_name_every_method(bent):
    made = panels(bent[0])
    assert [panel["kind"] for panel in made] == ["heatmap"] * 2 + ["bars"] * 3
    assert [panel["title"] for panel in made][2:4] == ["Change with the seed", "Change with the row"]
    for panel in made[:2]:
        assert panel["rows"] == panel["columns"] == NAMES
        values = np.array(panel["values"])
        assert values.shape == (7, 7)
        assert values.min() >= panel["low"] - 1e-12
        assert values.max() <= panel["high"] + 1e-12
    for panel in made[2:]:
        assert panel["groups"] == NAMES
        (series,) = panel["series"]
        assert len(series["values"]) == 7
    assert [panel["y_scale"] for panel in made[2:]] == ["linear", "linear", "log"]
    low, high = made[2]["series"][0]["low"], made[2]["series"][0]["high"]
    assert all(a <= v <= b for a, v, b in zip(low, made[2]["series"][0]["values"], high, strict=True))
    assert made[4]["series"][0]["low"] is None
    json.dumps(made, allow_nan=False)


def test_progress_counts_explanations():
    seen = []
    compare(curved(3), training_rows(3)[:2], n_samples=60, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (7 * 2 * (3 + 2),) * 2


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"model": logistic([1.0, 2.0])}, r"model must be as_model\(network, output='probability'\)"),
        ({"model": sl.as_model(logistic([1.0, 2.0]))}, "compared on probabilities"),
        ({"rows": [[1.0, 2.0]]}, r"at least two rows and two features.* got shape \(1, 2\)"),
        ({"x_train": np.zeros((5, 3))}, "x_train has 3 features but rows have 2"),
        ({"target": 2}, "one of the network's outputs, 0 to 1; got 2"),
        ({"seeds": 1}, "seeds must be a whole number >= 2; got 1"),
    ],
)
def test_bad_input_is_named(changed, message):
    given = {
        "model": sl.as_model(logistic([1.0, 2.0]), output="probability"), "x_train": training_rows(2),
        "rows": training_rows(2)[:3], "target": 1, "sigma": 0.5, "feature_names": None, "seeds": 2, "n_samples": 50,
    } | changed  # fmt: skip
    with pytest.raises(SmoothlimeError, match=message):
        side_by_side(given.pop("model"), given.pop("x_train"), given.pop("rows"), **given)
