"""Certificates, robustness, agreement, paths and benchmarks where steps are taken in logarithms and ranks."""

import json

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from sklearn.ensemble import HistGradientBoostingClassifier

import smoothlime as sl
from smoothlime.benchmarking.benchmark import benchmark
from smoothlime.cli import main
from smoothlime.errors import DrawsOffData, InvalidArgument, NoGradients

RNG = np.random.default_rng(17)
DATA = np.column_stack([RNG.lognormal(0, 1, 2_000), RNG.poisson(2, 2_000), RNG.normal(size=2_000)])
X = DATA[:5]
KINDS = {0: "log", 1: "ranks", 2: "ranks"}
AROUND = {"sigma": 0.5, "background": DATA, "scale": KINDS}


def share(a):
    return 1 / (1 + np.exp(-np.log(np.maximum(a[:, 0], 1e-300)) - a[:, 1] + 2))


def test_certificates_from_the_output_range_hold_in_distances_of_scores():
    certificate = sl.certify(share, X, output_range=(0, 1), **AROUND)
    assert certificate.lipschitz == pytest.approx(np.full(5, 0.48394), abs=1e-4)
    e = sl.explain(share, X, n_samples=16_384, **AROUND)
    for one in range(5):
        for other in range(one):
            distance = np.linalg.norm((e.scores[one] - e.scores[other]) / e.std)
            apart = np.linalg.norm(e.standardised[one] - e.standardised[other])
            assert apart <= certificate.bound(distance)[one] + e.radius[one] + e.radius[other]
    without_model = sl.certify(None, X, output_range=(0, 1), **AROUND)
    np.testing.assert_allclose(without_model.bound(0.3), certificate.bound(0.3), rtol=1e-9)
    of_explanation = sl.certify(share, e, output_range=(0, 1))
    np.testing.assert_allclose(of_explanation.lipschitz, certificate.lipschitz)
    sharper = sl.certify(share, X, output_range=(0, 1), n_samples=4_096, **AROUND)
    again = sl.certify(share, e, output_range=(0, 1), n_samples=4_096)
    np.testing.assert_allclose(again.residual, sharper.residual, rtol=1e-6)


@pytest.mark.parametrize("ask", [sl.certify, sl.robustness])
def test_what_does_not_carry_over_is_refused(ask):
    for more, message in (
        ({"gradient_bound": 2.0}, "a gradient bound does not carry over to scales"),
        ({"units": "raw", "output_range": (0, 1)}, "units='raw' is for steps in the features themselves"),
    ):
        with pytest.raises(InvalidArgument, match=message):
            ask(share, X, **AROUND, **more)
    with pytest.raises(InvalidArgument, match="give scale or a Neighbourhood as sigma, not both"):
        ask(share, X, sigma=sl.Neighbourhood(0.5), scale="log", output_range=(0, 1))


def test_an_explanation_says_by_itself_how_its_rows_were_perturbed():
    e = sl.explain(share, X, n_samples=256, **AROUND)
    for more in ({"background": DATA}, {"scale": "log"}, {"fixed": [0]}, {"sigma": 0.5}):
        with pytest.raises(InvalidArgument, match=f"{next(iter(more))} is that of the explanation given as X"):
            sl.certify(share, e, output_range=(0, 1), **more)


def test_neighbours_of_robustness_lie_in_scores():
    """They stay with the data as draws do, and what they show is within the certificate."""
    seen = []

    def f(a):
        seen.append(a.copy())
        return share(a)

    x = np.vstack([X, [2.0, 60.0, 0.0]])
    found = sl.robustness(f, x, neighbours=3, n_samples=256, norm=2, output_range=(0, 1), **AROUND)
    asked = np.concatenate(seen)
    assert np.isin(asked[:, 1], np.append(DATA[:, 1], 60.0)).all()
    assert asked[:, 2].min() >= DATA[:, 2].min()
    assert found.population <= found.ceiling.mean()
    assert (found.per_row > 0).all()
    full = sl.Neighbourhood.from_data(
        np.column_stack([DATA[:, 0], DATA[:, 0] * DATA[:, 1]]), 0.5, full=True, scale="ranks"
    )
    both = sl.robustness(
        lambda a: share(np.column_stack([a, a[:, 0]])), X[:, :2], sigma=full, neighbours=2, n_samples=256
    )
    assert np.isfinite(both.per_row).all()


@pytest.mark.parametrize("gap", [False, True])
def test_robustness_of_trees_is_that_of_a_function_that_asks_them(gap):
    """Trees are read around rows; neighbours are other rows, so the trees are only asked there."""
    trees = HistGradientBoostingClassifier(max_iter=5, random_state=0).fit(DATA, DATA[:, 1] > DATA[:, 2] + 1)
    x = X.copy()
    x[0, 0] = np.nan if gap else x[0, 0]
    settings = {"neighbours": 3, "n_samples": 256, **AROUND}
    found = sl.robustness(trees, x, target=1, **settings)
    asked = sl.robustness(lambda a: trees.predict_proba(a)[:, 1], x, output_range=(0, 1), **settings)
    np.testing.assert_allclose(found.per_row, asked.per_row, rtol=1e-9)
    assert (found.per_row > 0).any()


def test_robustness_in_logarithms_is_that_of_the_model_after_exp():
    positive = np.exp(DATA[:, [0, 2]])
    f, x = lambda a: 1 / (1 + a[:, 0] * np.sqrt(a[:, 1])), positive[:4]
    settings = {"neighbours": 3, "n_samples": 256, "method": "clime", "norm": 2}
    found = sl.robustness(f, x, sigma=0.5, background=positive, scale="log", **settings)
    units = np.log(positive).std(axis=0, ddof=1)
    other = sl.robustness(lambda u: f(np.exp(u)), np.log(x), sigma=sl.Neighbourhood(0.5, scale=units), **settings)
    np.testing.assert_allclose(found.per_row, other.per_row, rtol=1e-6)
    assert found.population == pytest.approx(other.population, rel=1e-6)


def test_gradients_are_compared_where_scales_are_continuous():
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(3, 6), torch.nn.Tanh(), torch.nn.Linear(6, 1)).double().eval()
    settings = {"sigma": 0.3, "background": DATA, "n_samples": 4_000}
    assert sl.agreement(net, X, scale={0: "log"}, **settings).agrees == (True,) * 5
    with pytest.raises(NoGradients, match="'x1' moves in steps"):
        sl.agreement(net, X, scale="ranks", **settings)
    assert sl.agreement(net, X, scale="ranks", fixed=[1], **settings).agrees[0] in (True, None)


def test_paths_have_the_numbers_of_explain():
    path = sl.sigma_path(share, X[0], [0.2, 0.5, 1.0], background=DATA, scale=KINDS, fixed=[2])
    for one, sigma in zip(path.explanations, path.sigmas, strict=True):
        other = sl.explain(
            share, X[0], sigma=sigma, background=DATA, scale=KINDS, fixed=[2], n_samples=1_024,
            method=one.method, design=one.design,
        )  # fmt: skip
        np.testing.assert_allclose(one.values, other.values, rtol=1e-12)
        assert one.neighbourhood.scales == ("log", "ranks", "fixed")
    model = HistGradientBoostingClassifier(max_iter=10).fit(DATA, DATA[:, 1] > 2)
    exact = sl.sigma_path(model, X[0], [0.2, 0.5], background=DATA, scale="ranks", output="margin")
    assert all(each.is_exact for each in exact.explanations)
    wide = sl.sigma_path(share, X[0], [0.01, 3.0], background=DATA, scale="auto")
    assert {each.neighbourhood.scales for each in wide.explanations} == {("ranks", "ranks", "ranks")}


def test_a_benchmark_takes_place_on_scales():
    found = benchmark(share, X[:2], draws=[64, 256], repeats=2, methods=["clime", "stein"], fixed=[2], **AROUND)
    assert found.features == 2
    assert found.contenders[0].errors[-1] < 0.5


class TestCommands:
    @pytest.fixture
    def run(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "on_scales_models.py").write_text("def f(a):\n    return a[:, 0] ** 0.5 + a[:, 1]\n")
        header = "spent,visits,warm"
        for name, rows in (("rows.csv", DATA[:3]), ("all.csv", DATA[:500])):
            np.savetxt(tmp_path / name, rows, delimiter=",", header=header, comments="", fmt="%.17g")
        words = ["on_scales_models:f", "rows.csv", "--path", ".", "--background", "all.csv"]
        return lambda command, *more: CliRunner().invoke(main, [command, *words, *more])

    def test_explain(self, run):
        done = run("explain", "--scale", "ranks", "-o", "e.json", "--n-samples", "256")
        assert done.exit_code == 0, done.output
        e = sl.load("e.json")
        assert e.neighbourhood.scales == ("ranks",) * 3
        same = sl.explain(
            lambda a: a[:, 0] ** 0.5 + a[:, 1], DATA[:3], background=DATA[:500], scale="ranks", sigma=0.5, n_samples=256
        )
        np.testing.assert_allclose(e.values, same.values, rtol=1e-9)

    def test_scales_by_column(self, run):
        done = run("explain", "--scale", "spent=log, visits=ranks", "-o", "e.json", "--n-samples", "256")
        assert done.exit_code == 0, done.output
        assert sl.load("e.json").neighbourhood.scales == ("log", "ranks", "linear")
        done = run("explain", "--scale", "auto", "--n-samples", "256")
        assert "ranks (spent, visits)" in done.output

    @pytest.mark.parametrize(
        ("scale", "message"),
        [
            ("rank", "--scale must be one of 'linear', 'log', 'ranks', 'auto'; got 'rank'"),
            ("spend=log", "--scale names 'spend', which is not a column; the columns are spent, visits, warm"),
            ("warm=log", "scale='log' is for numbers >= 0, and column 'warm' goes down to"),
            ("spent=", "--scale must be one of"),
        ],
    )
    def test_what_cannot_be(self, run, scale, message):
        done = run("explain", "--scale", scale)
        assert done.exit_code == 2
        assert message in done.stderr

    def test_raw_units_know_logarithms_alone(self, tmp_path, run):
        words = ["explain", "on_scales_models:f", "rows.csv", "--path", ".", "--raw-units", "--n-samples", "256"]
        done = CliRunner().invoke(main, [*words, "--scale", "spent=log", "--sigma", "0.1", "-o", "e.json"])
        assert done.exit_code == 0, done.output
        assert sl.load("e.json").std[0] == 0.1
        done = CliRunner().invoke(main, [*words, "--scale", "ranks"])
        assert done.exit_code == 2
        assert "needs data that shows how columns vary" in done.stderr

    def test_check_and_bench(self, run):
        done = run("check", "--scale", "ranks", "--output-range", "0", "100", "--json")
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["certificate"]["kind"] == "range"
        words = ["on_scales_models:f", "--data", "all.csv", "--path", ".", "--rows", "1", "--scale", "ranks"]
        done = CliRunner().invoke(main, ["bench", *words, "--draws", "64,128", "--repeats", "2", "--methods", "stein"])
        assert done.exit_code == 0, done.output

    def test_what_leaves_the_data_is_a_line(self, run):
        done = run("explain", "--n-samples", "256", "--sigma", "1")
        assert "smoothlime: many draws lie beyond what the background ever was" in done.stderr
        assert DrawsOffData.__name__ not in done.stderr
