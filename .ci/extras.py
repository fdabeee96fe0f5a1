"""Each of five extras alone, in an environment with nothing else: what it is for works, and what is missing is named.

`python extras.py` expects none of them, `python extras.py plot` that one and not the others.
"""

import os
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

import smoothlime as sl
from smoothlime.errors import MissingExtra, NoClosedForm

warnings.simplefilter("error")
os.environ["MPLBACKEND"] = "Agg"  # pictures go to memory, never to a screen


def plot(folder):
    """A picture of an explanation."""
    explained().plot().figure.savefig(folder / "plot.png")
    assert (folder / "plot.png").stat().st_size > 5_000


def parquet(folder):
    """A file of an explanation, and back."""
    e = explained()
    e.save(folder / "e.parquet")
    np.testing.assert_array_equal(sl.load(folder / "e.parquet").values, e.values)


def trees(folder):
    """Exact slopes of trees; the library that grew them, scikit-learn here, is the user's."""
    from sklearn.ensemble import RandomForestRegressor

    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    forest = RandomForestRegressor(5, random_state=0).fit(X, X[:, 0] * X[:, 1])
    assert sl.explain(forest, X[:2], sigma=0.5, method="exact").is_exact


def report(folder):
    """A page of HTML."""
    explained().to_html(folder / "report.html")
    assert (folder / "report.html").stat().st_size > 20_000


def app(folder):
    """The live page."""
    from smoothlime.app.live.demo import loans
    from smoothlime.app.live.page import create_page

    create_page(loans(), token="token")
    __import__("uvicorn")  # the port that it is served on


def explained():
    """An explanation that needs no extra."""
    return sl.explain(lambda a: np.sin(a[:, 0]) + a[:, 1], [0.5, 1.0], sigma=0.3, n_samples=256)


def main(*there):
    """Try all five, of which these are there; the live page brings reports along."""
    there = (*there, *["report"] * ("app" in there))
    for extra, use in (("plot", plot), ("parquet", parquet), ("trees", trees), ("report", report), ("app", app)):
        said = ""
        with tempfile.TemporaryDirectory() as folder:
            try:
                use(Path(folder))
            except (MissingExtra, NoClosedForm) as err:
                said = str(err)
        print(f"{extra}: {said or 'works'}")
        if (extra in there) != (not said):
            sys.exit(f"{extra} is {'' if extra in there else 'not '}installed")
        if said and f"pip install 'smoothlime[{extra}]'" not in said:
            sys.exit(f"the way to {extra} is not named")


if __name__ == "__main__":
    main(*sys.argv[1:])
