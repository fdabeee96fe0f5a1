"""Every claim of the paper at small scale, and verdicts that follow from the numbers."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

from smoothlime.paper import claims
from smoothlime.paper.study import NAMES, Curve

IN_ANY_RUN = {
    "theorem-1": {"holds in part"},
    "theorem-2": {"does not hold"},
    "proposition-1": {"holds"},
    "theorem-3": {"does not hold"},
    "proposition-2": {"holds"},
    "proposition-3": {"holds"},
    "regularised": {"holds"},
    "accuracy-simulated": {"does not hold"},
    "accuracy-bankruptcy": {"cannot be tested"},
    "accuracy-shopping": {"cannot be tested"},
    "accuracy-weak": {"cannot be tested"},
    "equivalence-falls": {"holds"},
    "as-low-as-100": {"does not hold", "holds in part"},
    "below-bounds": {"holds"},
    "approaches-zero": {"does not hold"},
    "smoothgrad-nearer": {"holds in part", "does not hold"},
    "saturates-at-200": {"does not hold", "holds in part"},
    "variance-equivalence": {"holds", "holds in part"},
    "variance-robustness": {"holds", "holds in part"},
    "weak-slower": {"does not hold", "holds in part"},
}


@pytest.mark.parametrize("claim", claims.CLAIMS, ids=lambda claim: claim.id)
def test_claim_at_small_scale(study, claim):
    finding = claim.judge(study)
    assert finding.verdict in IN_ANY_RUN[claim.id], finding
    assert finding.number
    assert finding.reason


def test_every_claim_has_a_row_of_its_own():
    ids = [claim.id for claim in claims.CLAIMS]
    assert len(set(ids)) == len(ids)
    assert set(ids) == set(IN_ANY_RUN)


def test_the_table_holds_plain_words(study):
    rows = claims.judge(study)
    assert [row["id"] for row in rows] == [claim.id for claim in claims.CLAIMS]
    assert all(isinstance(value, str) for row in rows for value in row.values())


@dataclass
class Made:
    """A study whose curves are given: mean distance as a function of n, and of what was asked."""

    distance: object
    floor: float = 0.0
    data: dict = field(default_factory=lambda: dict.fromkeys(NAMES, SimpleNamespace(source="uci")))

    def equivalence(self, name, **how):
        return self._curve(lambda n: self.distance(n, name=name, **how))

    def robustness(self, name, method, **how):
        if how["protocol"] == "ours":
            return self._curve(lambda n: self.floor)
        return self._curve(lambda n: self.floor + self.distance(n, name=name, method=method, **how))

    @staticmethod
    def _curve(mean):
        draws = [10, 20, 50, 100, 200, 500]
        return Curve(draws, [mean(n) for n in draws], [1e-6] * len(draws), 1.0, 10)


def verdict(claim_id, made):
    (claim,) = [each for each in claims.CLAIMS if each.id == claim_id]
    return claim.judge(made).verdict


def slow(n, **how):
    return 2 / np.sqrt(n)


class TestVerdictsFollowFromTheNumbers:
    def test_falling(self):
        assert verdict("equivalence-falls", Made(slow)) == "holds"
        assert verdict("equivalence-falls", Made(lambda n, **how: 1.0)) == "does not hold"
        only_one = lambda n, name, **how: slow(n) if name == "simulated" else 1.0
        assert verdict("equivalence-falls", Made(only_one)) == "holds in part"

    def test_equivalent_at_100(self):
        assert verdict("as-low-as-100", Made(slow)) == "does not hold"
        assert verdict("as-low-as-100", Made(lambda n, **how: 0.4 / np.sqrt(n))) == "holds"

    def test_approaching_zero(self):
        assert verdict("approaches-zero", Made(slow, floor=0.1)) == "does not hold"
        assert verdict("approaches-zero", Made(slow, floor=0.0)) == "holds"

    def test_saturating_at_200(self):
        assert verdict("saturates-at-200", Made(slow, floor=0.1)) == "does not hold"
        assert verdict("saturates-at-200", Made(slow, floor=10.0)) == "holds"

    def test_smaller_variance(self):
        faster = lambda n, variance=1.0, **how: variance * slow(n)
        slower = lambda n, variance=1.0, **how: slow(n) / variance
        assert verdict("variance-equivalence", Made(faster)) == "holds"
        assert verdict("variance-equivalence", Made(slower)) == "does not hold"
        assert verdict("variance-robustness", Made(faster, floor=0.1)) == "holds"
        assert verdict("variance-robustness", Made(slower, floor=0.1)) == "does not hold"

    def test_weaker_models(self):
        slower = lambda n, quality="good", **how: (2 if quality == "weak" else 1) * slow(n)
        faster = lambda n, quality="good", **how: (1 if quality == "weak" else 2) * slow(n)
        assert verdict("weak-slower", Made(slower)) == "holds"
        assert verdict("weak-slower", Made(faster)) == "does not hold"

    def test_accuracy(self):
        network = SimpleNamespace(accuracy=0.96, n_test=2_000, majority=0.95, balanced_accuracy=0.7)
        made = Made(slow)
        made.network = lambda name, quality="good": network
        assert verdict("accuracy-bankruptcy", made) == "holds"
        network.accuracy = 0.93
        assert verdict("accuracy-bankruptcy", made) == "does not hold"
