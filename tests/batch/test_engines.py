"""What needs no cluster: what is asked of engines, and what a worker of one checks."""

import pickle
import sys
import types

import batch_models
import pytest

import smoothlime as sl
from smoothlime.batch.engines import Workers, explainer, find_engine, ray
from smoothlime.batch.engines.wire import unpack
from smoothlime.batch.reference import ModelReference


@pytest.mark.parametrize(("engine", "module"), [("ray", "ray"), ("dask", "distributed")])
def test_an_engine_that_is_not_installed_names_its_extra_before_anything_is_read(
    engine, module, parquet, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(sl.errors.MissingExtra, match=rf"{module} is needed .*pip install 'smoothlime\[{engine}\]'"):
        sl.explain_table(batch_models.wave, parquet, tmp_path / "out", engine=engine)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"engine": "spark"}, "engine must be one of 'local', 'ray', 'dask'; got 'spark'"),
        ({"address": "auto"}, "engine='local' has none; choose engine='ray' or engine='dask'"),
        ({"gpus_per_worker": 1}, "gpus_per_worker is for engine='ray'; engine='local' does not"),
        ({"engine": "dask", "gpus_per_worker": 1}, "for Dask start a worker for each card"),
        ({"engine": "ray", "gpus_per_worker": -1}, "gpus_per_worker must be a number of cards, 0 or more; got -1"),
        ({"engine": "ray", "gpus_per_worker": "all"}, "got 'all'"),
        ({"engine": "ray", "address": 8786}, "address must be the address of a cluster.*got 8786"),
        ({"workers": 0}, "workers must be"),
    ],
)
def test_what_an_engine_cannot_use_is_refused(given, text, parquet, tmp_path):
    with pytest.raises(sl.errors.SmoothlimeError, match=text):
        sl.explain_table(batch_models.wave, parquet, tmp_path / "out", **given)


def test_local_needs_nothing_more():
    assert find_engine("local", Workers()).__name__ == "run_local"


def test_cards_that_are_not_there_are_missed():
    one_card = types.SimpleNamespace(cluster_resources=lambda: {"GPU": 1.0})
    ray._check_cards(one_card, Workers(gpus=0.5), 2)
    with pytest.raises(sl.errors.InvalidArgument, match=r"2 workers with gpus_per_worker=1 need 2 cards; Ray finds 1"):
        ray._check_cards(one_card, Workers(gpus=1.0), 2)


def sent(model, **changes):
    """An `Explainer` as a worker has it, and what came of loading its model."""
    payload = explainer.send(ModelReference.to(model), None, "ray")
    if changes:
        import dataclasses

        payload = pickle.dumps(dataclasses.replace(pickle.loads(payload), **changes))
    return unpack(explainer.Explainer(payload).load())


def test_a_worker_with_other_versions_is_refused():
    error = sent(batch_models.wave, versions={"smoothlime": "9.0", "numpy": "9.0", "scipy": "9.0"})
    assert isinstance(error, sl.errors.InvalidArgument)
    assert f"has smoothlime {sl.__version__}, and the job was started with 9.0: install the same" in str(error)


def test_a_worker_with_another_model_file_is_refused(tmp_path):
    path = tmp_path / "model.json"
    path.write_text("{}")
    error = sent(path, file=(str(path), "0" * 64))
    assert isinstance(error, sl.errors.InvalidArgument)
    assert "is another than where the job was started" in str(error)


def test_paths_begin_where_the_job_was_started(tmp_path, monkeypatch):
    import xgboost

    model = xgboost.XGBRegressor(n_estimators=2).fit([[0.0], [1.0]], [0, 1])
    model.save_model(tmp_path / "model.json")
    monkeypatch.chdir(tmp_path)
    payload = explainer.send(ModelReference.to("model.json"), None, "ray")
    monkeypatch.chdir("/")
    assert unpack(explainer.Explainer(payload).load()) is None


def test_a_function_of_the_main_script_goes_along(run_script):
    done = run_script(
        """
        import pickle, subprocess, sys
        from smoothlime.batch.engines.explainer import send
        from smoothlime.batch.reference import ModelReference

        def double(a):
            return 2 * a[:, 0]

        code = "import pickle, sys; sent = pickle.load(sys.stdin.buffer); model, _ = pickle.loads(sent.content);" \\
            "import numpy as np; print(model.load()(np.ones((1, 1))))"
        payload = send(ModelReference.to(double), None, "ray")
        print(subprocess.run([sys.executable, "-c", code], input=payload, capture_output=True).stdout)
        """
    )
    assert "[2.]" in done.stdout, done.stderr
