"""Models behind an address, asked of a real server in a process of its own that is as bad as servers are."""

import json
import logging
import os
import pickle
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import numpy as np
import pytest

import smoothlime as sl
from smoothlime import errors
from smoothlime.models import remote_calls

from .model_server import f, started

X = np.random.default_rng(0).normal(size=(5, 3))
PROTOCOLS = ("v2", "v1", "mlflow")
TOKEN = "s3cr3t-t0ken"


@pytest.fixture(scope="module")
def server():
    return started()


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Requests are sent again soon."""
    monkeypatch.setattr(remote_calls, "FIRST_WAIT", 0.005)


def ask(server, mode, protocol="v2", **settings):
    return sl.remote(f"{server}/{protocol}/{mode}", protocol=protocol, **{"timeout": 5.0, **settings})


def seen(server, mode):
    with urllib.request.urlopen(f"{server}/seen/{mode}") as answer:
        return json.load(answer)


class TestAnswers:
    @pytest.mark.parametrize("protocol", PROTOCOLS)
    def test_slopes_are_those_of_the_function_itself(self, server, protocol):
        model = ask(server, f"plain_{protocol}", protocol, outputs=["up", "down"], batch_size=100)
        e = sl.explain(model, X, target="up", sigma=0.5, n_samples=512)
        same = sl.explain(f, X, target=0, sigma=0.5, n_samples=512)
        np.testing.assert_allclose(e.values, same.values, rtol=1e-9)
        np.testing.assert_allclose(e.standard_error, same.standard_error, rtol=1e-6)
        assert e.output_name == "up"
        rows = seen(server, f"plain_{protocol}")["rows"]
        assert rows == model.sent == (e.n_samples + e.n_evaluations - e.n_samples).sum()

    @pytest.mark.parametrize("protocol", PROTOCOLS)
    def test_each_row_is_answered_once_whatever_goes_wrong(self, server, protocol):
        """Dropped connections, 500, 429, answers that break off, that come late and out of order."""
        mode = f"wild_{protocol}"
        model = ask(server, mode, protocol, batch_size=7, in_flight=5, budget=1_500, retries=20)
        points = np.random.default_rng(1).normal(size=(400, 3))
        np.testing.assert_allclose(model.values(points), f(points), rtol=1e-12)
        assert 400 < seen(server, mode)["rows"] <= model.sent <= 1_500
        assert 1 < seen(server, mode)["most_at_once"] <= 5
        answered = seen(server, mode)["answered"]
        assert sorted(answered) == sorted(points[:, 0].tolist())

    def test_an_explanation_through_all_that_has_the_same_numbers(self, server):
        model = ask(server, "wild_explained", batch_size=50, budget=10_000, retries=20)
        e = sl.explain(model, X, target=0, sigma=0.5, n_samples=256)
        np.testing.assert_allclose(e.values, sl.explain(f, X, target=0, sigma=0.5, n_samples=256).values, rtol=1e-9)

    def test_several_threads_share_a_model(self, server):
        model = ask(server, "threads", batch_size=10)
        parts = np.random.default_rng(2).normal(size=(6, 30, 3))
        with ThreadPoolExecutor(6) as pool:
            for part, found in zip(parts, pool.map(model.values, parts), strict=True):
                np.testing.assert_allclose(found, f(part), rtol=1e-12)
        assert model.sent == 180

    def test_images_reach_it_in_their_shape(self, server):
        for protocol in PROTOCOLS:
            images = np.random.default_rng(3).normal(size=(2, 1, 2, 3))
            e = sl.explain(ask(server, "images", protocol), images, target=1, sigma=0.1, n_samples=256)
            np.testing.assert_allclose(e.shaped()[:, 0, 0, 1], 2 * images[:, 0, 0, 1], atol=1e-6)

    def test_float32_is_told_and_rounded_to(self, server):
        model = ask(server, "narrow", dtype="float32")
        e = sl.explain(model, X, target=0, sigma=0.5, n_samples=64)
        assert e.provenance.dtype == "float32"
        np.testing.assert_allclose(e.prediction, f(X.astype(np.float32))[:, 0], rtol=1e-12)

    def test_frames_reach_mlflow_with_their_columns_and_text(self, server):
        import pandas as pd

        frame = pd.DataFrame(X, columns=list("cab"))
        frame["kind"] = ["x", "yy", "zzz", "x", "yy"]
        e = sl.explain(ask(server, "frames", "mlflow", batch_size=64), frame, target=1, sigma=0.1, n_samples=256)
        times = frame["kind"].str.len().to_numpy()
        np.testing.assert_allclose(e.values[:, 2], 2 * frame["b"] * times**2, atol=1e-6)
        assert np.isnan(e.values[:, 3]).all()

    def test_arrays_reach_mlflow_as_frames_where_their_columns_have_names(self, server):
        model = ask(server, "named", "mlflow", feature_names=["c", "a", "b"])
        np.testing.assert_allclose(model.values(X), f(X[:, [1, 2, 0]]), rtol=1e-12)

    def test_text_needs_a_protocol_with_frames(self, server):
        import pandas as pd

        frame = pd.DataFrame({"a": [1.0], "b": [2.0], "c": ["text"]})
        with pytest.raises(errors.WrongType, match="this model is asked with arrays"):
            sl.explain(ask(server, "plain"), frame, target=0)

    def test_one_of_several_parts(self, server):
        np.testing.assert_allclose(ask(server, "two_tensors", output_key="scores").values(X), f(X))
        np.testing.assert_allclose(ask(server, "two_tensors", output_key=1).values(X), 0 * f(X))
        np.testing.assert_allclose(ask(server, "records", "mlflow", output_key="two").values(X), f(X)[:, 1:])
        with pytest.raises(
            errors.RemoteError, match=r"parts 'scores', 'others'.*sl\.remote\(url, output_key='scores'\)"
        ):
            ask(server, "two_tensors").values(X)
        with pytest.raises(errors.RemoteError, match=r"parts 'one', 'two'.*sl\.remote\(url, output_key='one'\)"):
            ask(server, "records", "mlflow").values(X)


class TestGarbage:
    @pytest.mark.parametrize("protocol", ["v2", "v1"])
    @pytest.mark.parametrize(
        ("mode", "said"),
        [
            ("text", "the server's answer is not JSON: <html>busy</html>"),
            ("a_list", r"must be a JSON object; got \[1, 2\]"),
            ("deep", "the server's answer is not JSON"),
            ("too_large", "larger than 16 MiB"),
            ("no_field", "must have a list.*the model is on holiday"),
            ("few_rows", "answered 4 rows to 5 that were sent"),
            ("no_columns", r"one number for each row, or a list of them; got shape \(5, 0\)"),
            ("words", "must answer with numbers; got 'high' among them"),
            ("true", "must answer with numbers; got True among them"),
            ("null", "(must answer with numbers; got None|rows of one length|number for each row)"),
            ("ragged", "(rows of different lengths|rows of one length)"),
            ("astronomical", "has a number that is too large"),
        ],
    )
    def test_each_kind_has_an_error_that_says_what_came(self, server, protocol, mode, said):
        with pytest.raises(errors.RemoteError, match=said):
            ask(server, mode, protocol, retries=0).values(X)

    def test_of_v2_alone(self, server):
        for mode, said in (("other_id", "their ids differ"), ("wrong_shape", r"shape \[5, 3\], but 10 numbers")):
            with pytest.raises(errors.RemoteError, match=said):
                ask(server, mode).values(X)

    def test_nan_names_the_row(self, server):
        with pytest.raises(errors.ModelError, match=r"the model returned \[nan nan\] at row 0; it must be finite"):
            sl.explain(ask(server, "nan"), X, target=0)

    def test_features_that_json_has_no_number_for(self, server):
        with pytest.raises(errors.ModelError, match="JSON has no numbers for NaN and infinity"):
            ask(server, "plain").values(np.array([[np.nan, 0.0, 0.0]]))


class TestRefusals:
    @pytest.mark.parametrize(
        ("status", "kind", "said"),
        [
            (400, errors.ModelError, "refuses the rows, status 400"),
            (422, errors.ModelError, "refuses the rows, status 422"),
            (401, errors.RemoteError, "status 401.*Is token_env the name of the variable"),
            (403, errors.RemoteError, "status 403.*Does the token allow it"),
            (404, errors.RemoteError, "status 404.*whole address that takes the POST"),
            (413, errors.RemoteError, "status 413.*smaller batch_size"),
            (302, errors.RemoteError, "status 302.*Redirects are not followed"),
            (204, errors.RemoteError, "does not answer, status 204"),
        ],
    )
    def test_what_will_not_pass_is_not_asked_again(self, server, status, kind, said):
        before = seen(server, f"status{status}")["requests"]
        with pytest.raises(kind, match=said):
            ask(server, f"status{status}").values(X)
        assert seen(server, f"status{status}")["requests"] == before + 1

    def test_a_server_that_stays_down_is_given_up(self, server):
        model = ask(server, "dead", retries=2)
        with pytest.raises(errors.RemoteError, match=r"gave no answer, asked 3 times: status 503, .*no one is here"):
            model.values(X)
        assert model.sent == seen(server, "dead")["rows"] == 15

    def test_an_explanation_does_not_take_it_for_a_model_that_refuses_far_points(self, server):
        with pytest.raises(errors.RemoteError, match="asked 2 times"):
            sl.explain(ask(server, "dead", retries=1), X, target=0)

    def test_dropped_connections(self, server):
        with pytest.raises(errors.RemoteError, match=r"asked 2 times: (ReadError|RemoteProtocolError)"):
            ask(server, "dropping", retries=1).values(X)

    def test_nobody_there(self):
        with pytest.raises(errors.RemoteError, match="asked 2 times: ConnectError"):
            sl.remote("http://127.0.0.1:1/v2", retries=1).values(X)

    def test_an_answer_that_drips_is_out_of_time(self, server):
        with pytest.raises(errors.RemoteError, match=r"no whole answer within 0\.3 seconds"):
            ask(server, "drip", timeout=0.3, retries=0).values(X)

    def test_retry_after_is_waited_for(self, server, monkeypatch):
        waits = []
        wait = threading.Event.wait
        monkeypatch.setattr(
            threading.Event, "wait", lambda self, timeout=None: waits.append(timeout) or wait(self, timeout and 0.01)
        )
        np.testing.assert_allclose(ask(server, "later", in_flight=1).values(X), f(X))
        assert 1.0 in waits

    def test_a_server_that_wants_to_be_left_alone_for_a_day(self, server):
        with pytest.raises(errors.RemoteError, match=r"is not to be asked for 86,400 seconds: status 503"):
            ask(server, "tomorrow").values(X)

    def test_where_one_request_fails_the_others_stop(self, server):
        model = ask(server, "third_fails", batch_size=1, in_flight=1)
        with pytest.raises(errors.ModelError, match=r"refuses the rows, status 400.*odd row"):
            model.values(np.zeros((50, 3)))
        assert model.sent < 10

    def test_waits_grow_and_are_never_alike(self, server, monkeypatch):
        waits = []
        monkeypatch.setattr(remote_calls, "FIRST_WAIT", 0.1)
        monkeypatch.setattr(threading.Event, "wait", lambda self, timeout=None: waits.append(timeout))
        calls = remote_calls.Calls(f"{server}/v2/dead", timeout=5.0, retries=9, token_env=None, budget=None)
        with pytest.raises(errors.RemoteError, match="asked 10 times"):
            calls.post(
                json.dumps(
                    {"inputs": [{"name": "input", "shape": [1, 3], "datatype": "FP64", "data": [0, 0, 0]}]}
                ).encode(),
                1,
                threading.Event(),
            )
        most = np.minimum(10.0, 0.1 * 2.0 ** np.arange(9))
        found = np.array([each for each in waits if each is not None])[-9:]
        assert ((found >= 0.5 * most) & (found <= most)).all()
        assert len(set(found / most)) == 9

    @pytest.mark.parametrize(
        ("said", "low", "high"),
        [("3", 3, 3), ("0.5", 0.5, 0.5), ("", 0, 0), ("soon", 0, 0), ("-1", 0, 0), (1, 3_500, 3_600), (-1, 0, 0)],
    )
    def test_retry_after_is_a_number_or_a_date(self, said, low, high):
        if isinstance(said, int):  # hours from now; no parameter holds the time, as workers must collect the same
            said = format_datetime(datetime.now(UTC) + timedelta(hours=said))
        assert low <= remote_calls._retry_after(said) <= high


class TestBudget:
    def test_a_call_that_would_need_more_is_not_begun(self, server):
        model = ask(server, "thrifty", budget=12)
        model.values(X)
        model.values(X)
        with pytest.raises(
            errors.BudgetExceeded, match="5 rows are to be sent, but of the budget of 12 rows 10 are spent"
        ):
            model.values(X)
        assert model.sent == seen(server, "thrifty")["rows"] == 10

    def test_rows_that_are_sent_again_count(self, server):
        model = ask(server, "dead", budget=12, retries=9)
        with pytest.raises(errors.BudgetExceeded, match="of the budget of 12 rows 10 are spent"):
            model.values(X)
        assert model.sent == 10

    def test_an_explanation_ends_with_it(self, server):
        model = ask(server, "spent", budget=2_000)
        with pytest.raises(errors.BudgetExceeded, match="Give a larger budget, or fewer rows or draws"):
            sl.explain(model, X, target=0, rtol=1e-6)
        assert seen(server, "spent")["rows"] <= model.sent <= 2_000


class TestToken:
    def test_it_comes_from_the_environment_and_shows_nowhere(self, server, monkeypatch, caplog, tmp_path):
        monkeypatch.setenv("MODEL_TOKEN", TOKEN)
        caplog.set_level(logging.DEBUG)
        model = ask(server, "secret", token_env="MODEL_TOKEN", batch_size=500)
        e = sl.explain(model, X, target=0, n_samples=64)
        e.save(tmp_path / "e.json")
        assert seen(server, "secret")["tokens"][0] == f"Bearer {TOKEN}"
        for mode in ("status400", "status401", "dead", "dropping"):
            with pytest.raises(errors.SmoothlimeError) as caught:
                ask(server, mode, token_env="MODEL_TOKEN", retries=0).values(X)
            links = [caught.value, caught.value.__cause__, caught.value.__context__]
            assert not any(TOKEN in f"{each!r}{vars(each) if each is not None else ''}" for each in links)
        told = [repr(model), str(model), repr(vars(model)), pickle.dumps(model).decode("latin-1"), caplog.text]
        told.append((tmp_path / "e.json").read_text())
        assert not any(TOKEN in each for each in told)

    @pytest.mark.parametrize("protocol", PROTOCOLS)
    @pytest.mark.parametrize("status", [200, 400, 503])
    def test_a_server_that_repeats_it_is_not_quoted_with_it(self, server, monkeypatch, status, protocol):
        monkeypatch.setenv("MODEL_TOKEN", TOKEN)
        for before in (0, 90, 95, 99, 103):  # messages are cut short, which must not leave a part of it
            with pytest.raises(errors.SmoothlimeError) as caught:
                ask(server, f"repeats{status}{before}", protocol, token_env="MODEL_TOKEN", retries=0).values(X)
            links = [caught.value, caught.value.__cause__, caught.value.__context__]
            assert not any(TOKEN[:3] in f"{each!r}" for each in links)

    def test_what_is_not_set_or_is_no_name(self, server, monkeypatch):
        monkeypatch.delenv("MODEL_TOKEN", raising=False)
        with pytest.raises(errors.InvalidArgument, match=r"the environment variable MODEL_TOKEN, .* is not set"):
            ask(server, "plain", token_env="MODEL_TOKEN")
        monkeypatch.setenv("MODEL_TOKEN", "two words")
        with pytest.raises(errors.InvalidArgument, match="holds no token") as caught:
            ask(server, "plain", token_env="MODEL_TOKEN")
        assert "two words" not in str(caught.value)
        with pytest.raises(
            errors.InvalidArgument, match="the name of an environment variable, not the token"
        ) as caught:
            ask(server, "plain", token_env="eyJhbGciOi.J9")
        assert "eyJ" not in str(caught.value)

    @pytest.mark.parametrize("host", ["models.example", "10.0.0.7", "192.168.1.2:8080", "127.evil.example"])
    def test_it_goes_over_tls_or_to_this_machine_only(self, host, monkeypatch):
        monkeypatch.setenv("MODEL_TOKEN", TOKEN)
        with pytest.raises(errors.InvalidArgument, match="a token goes over https only, or to this machine"):
            sl.remote(f"http://{host}/v2", token_env="MODEL_TOKEN")
        sl.remote(f"https://{host}/v2", token_env="MODEL_TOKEN")
        for own in ("localhost", "127.0.0.2", "[::1]:80"):
            sl.remote(f"http://{own}/v2", token_env="MODEL_TOKEN")


class TestArguments:
    @pytest.mark.parametrize(
        ("url", "said"),
        [
            ("models.example/v2", "url must be a whole address"),
            ("ftp://models.example/v2", "url must be a whole address"),
            ("http://", "url must be a whole address"),
            ("http://[half/v2", "url must be a whole address"),
            ("https://me:pass@models.example/v2", "url must hold no user or password"),
        ],
    )
    def test_addresses_that_are_none(self, url, said):
        with pytest.raises(errors.InvalidArgument, match=said) as caught:
            sl.remote(url)
        assert "pass@" not in str(caught.value)

    @pytest.mark.parametrize(
        ("settings", "said"),
        [
            ({"protocol": "v3"}, "protocol must be one of 'v2', 'v1', 'mlflow'"),
            ({"dtype": "int8"}, "dtype must be one of 'float64', 'float32'"),
            ({"budget": 0}, "budget must be a whole number >= 1"),
            ({"batch_size": 0}, "batch_size must be a whole number >= 1"),
            ({"timeout": 0}, "timeout must be a number of seconds above 0"),
            ({"retries": -1}, "retries must be a whole number >= 0"),
        ],
    )
    def test_settings_that_are_none(self, settings, said):
        with pytest.raises(errors.InvalidArgument, match=said):
            sl.remote("https://models.example/v2", **settings)

    def test_what_is_secret_in_an_address_is_not_shown(self, server):
        model = sl.remote(f"{server}/v2/status404?key={TOKEN}")
        assert TOKEN not in repr(model)
        with pytest.raises(errors.RemoteError, match="status 404") as caught:
            model.values(X)
        assert TOKEN not in str(caught.value)

    def test_the_library_it_needs_is_named(self, hide):
        hide("httpx")
        with pytest.raises(
            errors.MissingExtra, match=r"httpx is needed to ask a model behind an address.*smoothlime\[remote\]"
        ):
            sl.remote("https://models.example/v2")


class TestProcesses:
    def test_it_can_be_sent_to_another_process_but_with_a_budget(self, server):
        model = pickle.loads(pickle.dumps(ask(server, "plain")))
        np.testing.assert_allclose(model.values(X), f(X))
        with pytest.raises(pickle.PicklingError, match="a remote model with a budget cannot be sent"):
            pickle.dumps(ask(server, "plain", budget=10))

    def test_a_forked_process_is_told_to_make_its_own(self, server, monkeypatch):
        model = ask(server, "plain")
        monkeypatch.setattr(os, "getpid", lambda: -1)  # as in a child
        with pytest.raises(errors.RemoteError, match=r"was made in another process.*start processes by spawn"):
            model.values(X)
