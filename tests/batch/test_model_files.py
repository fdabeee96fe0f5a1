"""Model files that change, or that a link takes for others, while a job is at work."""

import hashlib
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from xgboost import XGBRegressor

import smoothlime as sl
from smoothlime.batch.reference import ModelReference
from smoothlime.cli._models import ModelOptions


def saved(path, factor):
    rows = np.random.default_rng(0).standard_normal((60, 2))
    XGBRegressor(n_estimators=2, max_depth=2, n_jobs=1).fit(rows, factor * rows[:, 0]).save_model(path)
    return path


@pytest.mark.parametrize("reference", [ModelReference.to, ModelOptions().reference], ids=["python", "command line"])
def test_a_worker_refuses_a_file_that_is_another_than_the_job_began_with(reference, tmp_path):
    path = saved(tmp_path / "model.ubj", 1)
    first = hashlib.sha256(path.read_bytes()).hexdigest()
    model = reference(str(path))
    model.load()
    other = pickle.loads(pickle.dumps(model))
    assert other.load() is not None
    os.replace(saved(tmp_path / "other.ubj", 5), path)
    assert model.identity(lambda: np.zeros(1))["file"] == first
    with pytest.raises(sl.errors.UnreadableFile, match="changed after the job had begun"):
        pickle.loads(pickle.dumps(model)).load()


class Marks:
    """Says that it was unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


def test_a_link_that_turns_after_it_was_compared_gives_nothing_else_trust(tmp_path, monkeypatch):
    good, bad, link = tmp_path / "good.pkl", tmp_path / "bad.pkl", tmp_path / "link.pkl"
    good.write_bytes(pickle.dumps({"fine": 1}))
    bad.write_bytes(pickle.dumps(Marks(tmp_path / "ran")))
    link.symlink_to(good)
    compare = Path.samefile

    def turned(self, other):
        found = compare(self, other)
        link.unlink()
        link.symlink_to(bad)
        return found

    monkeypatch.setattr(Path, "samefile", turned)
    assert ModelOptions(trust=(str(good),)).load(str(link)) == {"fine": 1}
    assert not (tmp_path / "ran").exists()
