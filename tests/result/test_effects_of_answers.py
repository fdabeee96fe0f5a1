"""Means over rows of contributions and switches: what they are, and their errors."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.ensemble import RandomForestRegressor

import smoothlime as sl
from smoothlime.errors import InvalidArgument
from smoothlime.testing import Probit

RNG = np.random.default_rng(0)
DATA = RNG.normal(size=(40, 3))
V = [0.7, -0.4, 0.3]
TABLE = pd.DataFrame({"age": DATA[:, 0], "city": np.array(["Rome", "Oslo", "Bern", "Rome"])[np.arange(40) % 4]})


def of_table(table):
    return np.sin(table["age"]) + 0.5 * (table["city"] == "Rome") + table["age"] * (table["city"] == "Oslo")


def contributions(**more):
    return sl.contributions(Probit(V), DATA[:10], baseline=np.zeros(3), sigma=0.5, **more)


def test_means_are_those_of_contributions():
    found = contributions(n_samples=512)
    effects = found.effects()
    np.testing.assert_allclose(effects.values, found.values.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(effects.absolute, np.abs(found.values).mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(effects.positive, (found.values > 0).mean(axis=0))
    assert effects.what == "contribution"
    assert (effects.absolute_bias >= 0).all()
    total = (found.total - found.base - found.residual).mean()
    assert effects.values.sum() == pytest.approx(total, abs=1e-12)
    by = found.effects(by=["a", "b"] * 5)
    np.testing.assert_allclose(by.groups["a"].values, found.values[::2].mean(axis=0), rtol=1e-12)
    apart = by.difference("a", "b")
    np.testing.assert_allclose(apart.values, by.groups["a"].values - by.groups["b"].values, rtol=1e-12)
    assert (apart.standard_error > 0).all()
    text = str(effects)
    assert "mean contribution" in text
    assert "mean |contribution|" in text
    assert "in units of the output" in text
    assert "mean contribution" in effects._repr_html_()
    assert "mean contributions over 10 rows" in effects.plot().get_title("left")
    plt.close("all")
    assert len(effects.to_frame()) == 3
    with pytest.raises(InvalidArgument, match="not a feature"):
        found.effects(by="height")


@pytest.mark.parametrize("is_shared", [True, False], ids=["shared", "independent"])
def test_intervals_of_mean_contributions_hold(is_shared):
    rows, repeats = DATA[:4], 300
    options = {"baseline": np.zeros(3), "sigma": 0.5, "progress": False}
    truth = sl.contributions(Probit(V), rows, n_samples=2**17, **options).values.mean(axis=0)
    if is_shared:
        found = [sl.contributions(Probit(V), rows, n_samples=128, seed=seed, **options) for seed in range(repeats)]
        effects = [each.effects() for each in found]
    else:
        options |= {"draws": "independent", "n_samples": 128}
        again, labels = np.tile(rows, (100, 1)), np.repeat(np.arange(100), 4)
        found = [sl.contributions(Probit(V), again, seed=seed, **options) for seed in range(3)]
        effects = [group for each in found for group in each.effects(by=labels).groups.values()]
    ends = np.array([each.interval() for each in effects])
    hits = ((ends[:, 0] <= truth) & (truth <= ends[:, 1])).sum(axis=0)
    low, high = binom.ppf([1e-4, 1 - 1e-4], repeats, [0.925, 0.975])
    assert ((low <= hits) & (hits <= high)).all(), hits / repeats


def test_exact_contributions_have_no_error_of_drawing_and_columns_held_alike_have_no_effect():
    forest = RandomForestRegressor(4, max_depth=3, random_state=0).fit(DATA, DATA[:, 0] * DATA[:, 1])
    found = sl.contributions(forest, DATA[:10], baseline=[0.0, DATA[0, 1], 0.0], sigma=0.5, fixed=[1])
    alike = sl.contributions(forest, DATA[:1], baseline=[0.0, DATA[0, 1], 0.0], sigma=0.5, fixed=[1])
    assert np.isfinite(found.effects().values).all()  # it differs in most rows
    assert np.isnan(alike.effects().values).tolist() == [False, True, False]
    assert not np.nan_to_num(found.effects().standard_error).any()
    sample = found.effects(rows="sample")
    np.testing.assert_allclose(
        sample.standard_error, found.values.std(axis=0, ddof=1) / np.sqrt(len(found)), rtol=1e-9, atol=1e-12
    )


def test_means_are_those_of_switches():
    e = sl.explain(of_table, TABLE, background=TABLE, sigma=0.5, n_samples=512)
    switches = e.switches
    effects = switches.effects()
    assert effects.feature_names == tuple(f"city → {level}" for level in switches.levels)
    other = np.where(switches.is_own, np.nan, switches.effect)
    np.testing.assert_allclose(effects.values, np.nanmean(other, axis=0), rtol=1e-12)
    assert effects.count.tolist() == (~switches.is_own).sum(axis=0).tolist()
    error = np.where(switches.is_own, np.nan, switches.standard_error)
    np.testing.assert_allclose(effects.standard_error, np.nanmean(error, axis=0), rtol=1e-12)
    from_rome = switches.effects(by="city").groups["Rome"]
    to_bern = list(switches.levels).index("Bern")
    assert abs(from_rome.values[to_bern] + 0.5) < 6 * from_rome.standard_error[to_bern] + 1e-9
    assert "mean switch" in str(effects)
    assert "mean switches over" in effects.plot().get_title("left")
    plt.close("all")
    with pytest.raises(InvalidArgument, match="no category of these switches"):
        switches.effects(by="age")
