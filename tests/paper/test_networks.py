from dataclasses import replace

import numpy as np
import pytest
import torch

import smoothlime as sl
from smoothlime.errors import InvalidArgument, WrongType
from smoothlime.paper.datasets import bayes_accuracy, simulated
from smoothlime.paper.networks import RECIPES, train
from smoothlime.paper.scores import accuracy, auc, balanced_accuracy


@pytest.fixture(scope="module")
def data():
    return simulated(n=500)


@pytest.fixture(scope="module")
def network(data):
    return train(data, epochs=5, seed=1)


def test_the_network_is_the_papers(network):
    kinds = [type(part).__name__ for part in network.module]
    assert kinds == ["Linear", "ELU", "Linear", "ELU", "Linear"]
    assert [tuple(part.weight.shape) for part in network.module if hasattr(part, "weight")] == [
        (10, 2),
        (10, 10),
        (2, 10),
    ]
    assert not network.module.training


def test_scores_are_those_of_the_test_part(network, data):
    with torch.no_grad():
        logits = network.module(torch.tensor(data.x_test)).numpy()
    predicted = logits.argmax(axis=1)
    assert network.accuracy == np.mean(predicted == data.y_test)
    recalls = [np.mean(predicted[data.y_test == label] == label) for label in (0, 1)]
    assert network.balanced_accuracy == pytest.approx(np.mean(recalls), abs=1e-12)
    margin = logits[:, 1] - logits[:, 0]
    wins = margin[data.y_test == 1][:, None] > margin[data.y_test == 0]
    assert network.auc == pytest.approx(np.mean(wins), abs=1e-12)
    assert (network.n_train, network.n_test, network.majority) == (400, 100, data.majority)


def test_five_epochs_come_close_to_the_best_rule(network):
    best = bayes_accuracy(1.0)
    assert abs(network.accuracy - best) < 5 * np.sqrt(best * (1 - best) / network.n_test)
    assert network.auc > 0.9


def test_the_model_gives_named_probabilities_and_gradients(network, data):
    explained = sl.explain_outputs(network.model, data.x_test[:3], sigma=0.5, n_samples=200, method="smoothgrad")
    np.testing.assert_allclose(network.model.values(data.x_test[:3]).sum(axis=1), 1)
    assert network.model.outputs == data.classes
    assert tuple(explained) == data.classes
    assert explained["1"].feature_names == data.feature_names


def weights(network):
    return torch.cat([each.detach().flatten() for each in network.module.parameters()]).numpy()


def test_the_same_seed_gives_the_same_network(network, data):
    np.testing.assert_array_equal(weights(train(data, epochs=5, seed=1)), weights(network))
    assert not np.array_equal(weights(train(data, epochs=5, seed=2)), weights(network))


def test_the_number_of_threads_makes_no_difference():
    rng = np.random.default_rng(0)
    wide = replace(
        simulated(n=10_000),
        x_train=rng.standard_normal((8_000, 15)),
        x_test=rng.standard_normal((2_000, 15)),
        feature_names=tuple(map(str, range(15))),
    )  # two features are too few for threads to share the work
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            found += [weights(train(wide, epochs=16, batch_size=None)), weights(train(wide, epochs=2, batch_size=128))]
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    for k in (2, 4):
        np.testing.assert_array_equal(found[k], found[0])
        np.testing.assert_array_equal(found[k + 1], found[1])


def test_the_global_random_state_is_neither_used_nor_changed(network, data):
    torch.manual_seed(123)
    before, before_numpy = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002  # the state that must stay
    again = train(data, epochs=5, seed=1)
    assert torch.equal(torch.random.get_rng_state(), before)
    np.testing.assert_array_equal(np.random.get_state()[1], before_numpy)  # noqa: NPY002  # the state that must stay
    np.testing.assert_array_equal(weights(again), weights(network))


def test_training_works_inside_no_grad_and_leaves_no_gradients(data):
    with torch.no_grad():
        network = train(data, epochs=1)
    assert all(each.grad is None for each in network.module.parameters())


def test_a_full_batch_is_one_step_per_epoch(data):
    one = train(data, epochs=1, batch_size=None, learning_rate=1e-2)
    same = train(data, epochs=1, batch_size=10_000, learning_rate=1e-2)
    np.testing.assert_array_equal(weights(one), weights(same))
    start = train(data, epochs=1, batch_size=None, learning_rate=1e-300)
    moved = np.abs(weights(one) - weights(start))
    assert moved.max() <= 1e-2 * (1 + 1e-6)  # Adam's first step is the learning rate at most


def test_initial_weights_spread_as_torch_spreads_them(data):
    start = train(data, epochs=1, batch_size=None, learning_rate=1e-300)
    for part in start.module:
        if hasattr(part, "weight"):
            bound = part.in_features**-0.5
            assert bound / 2 < part.weight.abs().max() <= bound


def test_recipes_have_the_papers_epochs():
    assert {name: recipe["good"]["epochs"] for name, recipe in RECIPES.items()} == {
        "simulated": 15,
        "bankruptcy": 60,
        "shopping": 100,
    }
    assert RECIPES["bankruptcy"]["weak"]["epochs"] == 16


def test_recipes_on_the_simulated_data():
    data = simulated()
    good, weak = (train(data, **RECIPES["simulated"][kind]) for kind in ("good", "weak"))
    best = bayes_accuracy(1.0)
    assert abs(good.accuracy - best) < 4 * np.sqrt(best * (1 - best) / good.n_test)  # 4 standard errors: 7.6 points
    assert weak.accuracy < good.accuracy - 0.1


@pytest.mark.parametrize(
    ("setting", "kind", "complaint"),
    [
        ({"epochs": 0}, InvalidArgument, "epochs must be a whole number >= 1"),
        ({"epochs": 1.5}, WrongType, "epochs must be a whole number"),
        ({"epochs": 1, "batch_size": 0}, InvalidArgument, "batch_size must be a whole number >= 1"),
        ({"epochs": 1, "learning_rate": 0}, InvalidArgument, "learning_rate must be > 0"),
        ({"epochs": 1, "seed": -1}, InvalidArgument, "seed must be a whole number >= 0"),
    ],
)
def test_settings_are_checked(data, setting, kind, complaint):
    with pytest.raises(kind, match=complaint):
        train(data, **setting)


def test_auc_against_counting_pairs():
    rng = np.random.default_rng(0)
    y, score = rng.integers(2, size=60), rng.integers(8, size=60).astype(float)  # many ties
    difference = score[y == 1][:, None] - score[y == 0]
    assert auc(y, score) == pytest.approx(np.mean((difference > 0) + 0.5 * (difference == 0)), abs=1e-12)
    assert auc(y, -score) == pytest.approx(1 - auc(y, score), abs=1e-12)
    assert auc(y, np.zeros(60)) == 0.5


def test_auc_needs_both_classes():
    assert np.isnan(auc(np.zeros(3, dtype=int), np.arange(3.0)))


def test_accuracy_flatters_a_constant_answer_and_balanced_accuracy_does_not():
    y = np.array([0] * 95 + [1] * 5)
    assert accuracy(y, np.zeros(100, dtype=int)) == 0.95
    assert balanced_accuracy(y, np.zeros(100, dtype=int)) == 0.5
