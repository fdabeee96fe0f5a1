"""Plans against the formulas written out again, and against values computed elsewhere."""

from math import log, sqrt

import numpy as np
import pytest

import smoothlime as sl
from smoothlime import errors
from smoothlime.uncertainty import bounds

DIMENSIONS = (2, 10, 15, 100, 784)


def test_stein_plans_have_their_known_values():
    found = [sl.plan("stein", eps=0.05, d=d, output_range=(0, 1)).n_samples for d in DIMENSIONS]
    assert found == [2_075, 4_338, 5_539, 22_638, 142_794]


def test_least_squares_plans_have_their_known_values():
    found = [sl.plan("clime", eps=0.05, d=d, output_range=(0, 1)).n_samples for d in DIMENSIONS]
    assert found == [25_815, 46_746, 57_023, 190_407, 1_051_022]


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.999])
@pytest.mark.parametrize("eps", [0.5, 0.02])
def test_plans_are_their_formulas(eps, confidence):
    delta, d, sigma = 1 - confidence, 7, 0.4
    t = log(1 / delta)
    stein = 1.61 * (3.0 / (2 * eps)) ** 2 * (d + 2 * sqrt(d * t) + 2 * t)
    ball = 2 * (5.0 * sigma / eps) ** 2 * log(2 / delta)
    smooth = (2.0 * sigma**2 / eps) ** 2 * (sqrt(d) + sqrt(2 * t)) ** 2
    for expected, found in (
        (stein, sl.plan("stein", eps=eps, confidence=confidence, d=d, output_range=(-1, 2))),
        (ball, sl.plan("smoothgrad", eps=eps, confidence=confidence, sigma=sigma, gradient_bound=5.0)),
        (smooth, sl.plan("smoothgrad", eps=eps, confidence=confidence, sigma=sigma, gradient_lipschitz=2.0, d=d)),
    ):
        assert found.n_samples - 1 < expected <= found.n_samples
        assert found.kind == "certified"


@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("stein", {"d": 6, "output_range": (0, 1)}),
        ("clime", {"d": 6, "output_range": (0, 1)}),
        ("clime", {"d": 1, "output_range": (0, 1)}),
        ("smoothgrad", {"sigma": 0.5, "gradient_bound": 2.0}),
        ("smoothgrad", {"sigma": 0.5, "gradient_lipschitz": 2.0, "d": 6}),
    ],
)
def test_the_error_of_a_plan_is_the_error_that_was_asked_for(method, more):
    planned = sl.plan(method, eps=0.07, **more)
    reached = sl.plan(method, n_samples=planned.n_samples, **more)
    before = sl.plan(method, n_samples=planned.n_samples - 1, **more)
    assert reached.eps <= 0.07 < before.eps


def test_few_draws_promise_nothing_for_least_squares():
    assert bounds.least_squares_radius(1.0, 10, 20, 0.05) == np.inf


def test_kappa_is_the_least_sub_gaussian_constant_rounded_up():
    """κ* = sup 2(ln M − λm)/λ² over the worst sign pattern |t| > r; see docs/theory/bounds.md."""
    from scipy.stats import norm

    tilt, r = np.meshgrid(np.linspace(1.5, 3.0, 151), np.linspace(1.5, 3.0, 151))
    total = 2 * np.exp(tilt**2 / 2) * (norm.sf(r - tilt) + norm.sf(tilt) - norm.sf(r + tilt))
    mean = 4 * norm.pdf(r) - 2 * norm.pdf(0)
    kappa = (2 * (np.log(total) - tilt * mean) / tilt**2).max()
    assert 1.608 < kappa < bounds.KAPPA


def test_the_papers_number_stands_beside_ours():
    gradients = sl.plan("smoothgrad", eps=0.05, sigma=0.5, gradient_bound=2.0, d=10)
    assert gradients.paper_n_samples == int(np.ceil((1 / 0.05) ** 2 * log(10 / 0.05)))
    values = sl.plan("stein", eps=0.05, sigma=1.0, d=10, output_range=(-1, 1), x_norm=2.0)
    assert values.paper_n_samples == int(np.ceil(10 * log(10 / 0.05) / (0.05 / 2) ** 2))
    assert "The paper would ask for" in str(values)
    assert "no C is right" in values.paper_note
    assert sl.plan("stein", eps=0.05, d=10, output_range=(0, 1)).paper_n_samples is None


def test_a_plan_prints_as_a_sentence():
    text = str(sl.plan("stein", eps=0.05, d=10, output_range=(0, 1)))
    for words in ("4,338 iid draws", "within 0.05", "0.95 confidence", "certified", "outputs between 0 and 1"):
        assert words in text


@pytest.mark.parametrize(
    ("method", "arguments", "kind", "message"),
    [
        ("lime", {"eps": 0.1}, errors.InvalidArgument, r"method must be one of 'smoothgrad', 'stein', 'clime'"),
        ("stein", {}, errors.InvalidArgument, r"give either eps.*or n_samples"),
        ("stein", {"eps": 0.1, "n_samples": 9}, errors.InvalidArgument, r"give either eps.*or n_samples"),
        ("stein", {"eps": 0}, errors.InvalidArgument, r"eps must be > 0; got 0"),
        (
            "stein",
            {"eps": 0.1, "d": 3},
            errors.InvalidArgument,
            r"output_range, the lowest and highest output, is needed to plan stein",
        ),
        (
            "stein",
            {"eps": 0.1, "output_range": (0, 1)},
            errors.InvalidArgument,
            r"d, the number of features, is needed",
        ),
        ("stein", {"eps": 0.1, "d": 3, "output_range": (1, 0)}, errors.InvalidArgument, r"lowest first; got \(1, 0\)"),
        ("stein", {"eps": 0.1, "d": 3, "output_range": 1}, errors.WrongType, r"output_range must be two numbers"),
        ("smoothgrad", {"eps": 0.1, "sigma": 1}, errors.InvalidArgument, r"needs one of gradient_bound"),
        ("smoothgrad", {"eps": 0.1, "gradient_bound": 1}, errors.InvalidArgument, r"sigma is needed"),
        (
            "smoothgrad",
            {"eps": 0.1, "gradient_lipschitz": 1, "sigma": 1},
            errors.InvalidArgument,
            r"d, the number of features, is needed to plan smoothgrad from gradient_lipschitz",
        ),
    ],
)
def test_bad_plans_say_what_is_missing(method, arguments, kind, message):
    with pytest.raises(kind, match=message):
        sl.plan(method, **arguments)


def test_plans_that_promise_nothing_are_not_made():
    with pytest.raises(errors.InvalidArgument, match="n_samples=20 is too few to promise anything of clime"):
        sl.plan("clime", n_samples=20, d=10, output_range=(0, 1))
    with pytest.raises(errors.InvalidArgument, match=r"eps must be at least 1e-08; got 1e-200"):
        sl.plan("stein", eps=1e-200, d=10, output_range=(0, 1))
    assert "0.99999 confidence" in str(sl.plan("stein", eps=0.1, d=2, output_range=(0, 1), confidence=0.99999))


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("smoothgrad", {"sigma": 1.0, "gradient_bound": 1e-200}),
        ("smoothgrad", {"sigma": 1e-200, "gradient_lipschitz": 1.0, "d": 3}),
        ("stein", {"d": 3, "output_range": (0, 1e-200)}),
    ],
)
def test_a_plan_has_at_least_one_draw(method, arguments):
    assert sl.plan(method, eps=0.1, **arguments).n_samples == 1
    assert "1 iid draw keeps" in str(sl.plan(method, eps=0.1, **arguments))


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("smoothgrad", {"eps": 0.1, "sigma": 1.0, "gradient_bound": 1e200}),
        ("smoothgrad", {"eps": 0.1, "sigma": 1e200, "gradient_bound": 1e200, "d": 3}),
        ("smoothgrad", {"n_samples": 10, "sigma": 1e200, "gradient_bound": 1e200, "d": 3}),
        ("smoothgrad", {"eps": 0.1, "sigma": 1e200, "gradient_lipschitz": 1.0, "d": 3}),
        ("stein", {"eps": 0.1, "d": 3, "output_range": (0, 1e200)}),
        ("stein", {"eps": 0.1, "d": 3, "output_range": (-1e308, 1e308)}),
        ("clime", {"eps": 0.1, "d": 3, "output_range": (0, 1e300)}),
        ("stein", {"n_samples": 10**400, "d": 3, "output_range": (0, 1)}),
    ],
)
def test_plans_beyond_all_numbers_are_refused(method, arguments):
    with pytest.raises(errors.InvalidArgument, match=r"the plan is too large for a number: .* Check the units"):
        sl.plan(method, **arguments)


@pytest.mark.parametrize("more", [{"sigma": 1e-200}, {"sigma": 1e200}, {"sigma": 1.0, "x_norm": 1e-200}])
def test_where_the_papers_number_is_none_ours_stands_alone(more):
    found = sl.plan("stein", eps=0.1, d=3, output_range=(0, 1), **more)
    assert found.paper_n_samples is None
    assert found.n_samples == sl.plan("stein", eps=0.1, d=3, output_range=(0, 1)).n_samples


class TestCommand:
    def run(self, *arguments):
        from click.testing import CliRunner

        from smoothlime.cli import main

        return CliRunner().invoke(main, ["plan", *arguments])

    def test_prints_the_plan(self):
        done = self.run("stein", "--eps", "0.05", "--d", "10", "--output-range", "0", "1")
        assert done.exit_code == 0
        assert "4,338 iid draws" in done.output

    def test_prints_json(self):
        import json

        done = self.run("smoothgrad", "--n-samples", "1000", "--gradient-bound", "2", "--sigma", "0.5", "--json")
        assert json.loads(done.output)["n_samples"] == 1_000

    def test_help_names_all_that_a_plan_needs(self):
        said = "".join(self.run("--help").output.split())  # lines end at hyphens too
        assert "or--sigma,--gradient-lipschitzand--d." in said

    def test_complains_without_a_traceback(self):
        done = self.run("stein", "--eps", "0.05")
        assert done.exit_code == 2
        assert "--output-range, the lowest and highest output, is needed" in done.output
        assert "Traceback" not in done.output


def test_stein_is_planned_for_values_counted_from_the_middle_of_the_range():
    """Without a guarantee they are centred on other draws, of which 2 or 3 are too few for the bound."""
    words = "values counted from the middle of the range, as guarantee='certified' does"
    assert words in str(sl.plan("stein", n_samples=3, d=2, output_range=(0, 1)))
    assert words not in str(sl.plan("clime", n_samples=3_000, d=2, output_range=(0, 1)))
