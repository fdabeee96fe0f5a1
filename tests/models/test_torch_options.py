"""What `as_model` can be told of a torch module beyond its outputs: compile it, or let it compute in fewer digits."""

import dataclasses
import pickle
import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import smoothlime as sl
from smoothlime.errors import InvalidArgument, LostPrecision
from smoothlime.models.evaluation import automatic_batch_size
from smoothlime.models.torch import DENSE_BATCH_BYTES, GRAPHICS_BATCH_BYTES, PROCESSOR_BATCH_BYTES, WORTH_COMPILING

X = np.random.default_rng(0).normal(size=(5, 16))


def network():
    with torch.random.fork_rng():
        torch.manual_seed(1)
        layers = [torch.nn.Linear(16, 64), torch.nn.ELU(), torch.nn.Linear(64, 64), torch.nn.ELU()]
        return torch.nn.Sequential(*layers, torch.nn.Linear(64, 2)).eval()


def explain(model):
    return sl.explain(model, X, sigma=0.5, target=1, n_samples=512, design="antithetic")


class TestAutocast:
    @pytest.mark.parametrize(("name", "digits"), [("bfloat16", 8), ("float16", 11)])
    def test_slopes_are_off_by_the_digits_of_the_type_and_no_more(self, name, digits):
        exact = explain(network())
        with pytest.warns(LostPrecision):
            e = explain(sl.as_model(network(), autocast=name))
        # three layers forward and three back round numbers of `digits` bits, each by half a unit at most
        error = np.linalg.norm(e.values - exact.values, axis=1) / np.linalg.norm(exact.values, axis=1)
        assert (error < 6 * 2.0**-digits).all()
        assert (error > 2.0**-digits / 100).all()  # else nothing was computed in that type

    def test_layers_compute_in_the_type_and_points_stay_as_they_are(self):
        net, seen = network(), []
        net.register_forward_pre_hook(lambda _, args: seen.append(args[0].dtype))
        net[0].register_forward_hook(lambda _, args, out: seen.append(out.dtype))
        with pytest.warns(LostPrecision):
            e = explain(sl.as_model(net, autocast="bfloat16"))
        assert set(seen) == {torch.float32, torch.bfloat16}
        assert set(seen[0::2]) == {torch.float32}
        assert e.provenance.dtype == "float32"

    def test_steps_that_the_type_cannot_tell_apart_are_warned_about(self):
        with pytest.warns(LostPrecision, match=r"sigma is 0.5 .*slopes lose digits"):
            explain(sl.as_model(network(), autocast="bfloat16"))

    def test_probabilities_are_made_of_the_logits(self):
        model = sl.as_model(network(), autocast="bfloat16", output="probability")
        np.testing.assert_allclose(model.values(X.astype(np.float32)).sum(axis=1), 1, rtol=1e-5)


class TestCompile:
    """By a backend that traces but does not translate: torch's own takes half a minute to start where these run."""

    def test_answers_are_those_of_the_module(self):
        net = network()
        e = explain(sl.as_model(net, compile="eager"))
        np.testing.assert_allclose(e.values, explain(net).values, rtol=1e-5, atol=1e-6)
        assert all(parameter.requires_grad and parameter.grad is None for parameter in net.parameters())
        np.testing.assert_allclose(
            sl.explain(sl.as_model(net, compile="eager"), X, target=1, method="clime", n_samples=512).values,
            sl.explain(net, X, target=1, method="clime", n_samples=512).values,
            rtol=1e-4,
            atol=1e-5,
        )

    @pytest.mark.parametrize(("given", "passed"), [(True, {}), ("aot_eager", {"backend": "aot_eager"})])
    def test_what_is_compiled_sees_parameters_as_constants(self, given, passed, monkeypatch):
        asked, seen = [], []

        def compile(function, **settings):
            asked.append(settings)

            def compiled(parameters, points):
                seen.append((len(points), any(each.requires_grad for each in parameters.values())))
                return function(parameters, points)

            return compiled

        monkeypatch.setattr(torch, "compile", compile)
        e = explain(sl.as_model(network(), compile=given))
        assert asked == [passed]
        assert seen
        assert not any(requires_grad for _, requires_grad in seen)
        np.testing.assert_allclose(e.values, explain(network()).values, rtol=1e-5, atol=1e-6)
        assert min(n for n, _ in seen) >= WORTH_COMPILING  # f(x) of five rows is not worth it

    def test_weights_that_change_later_are_seen(self):
        net = network()
        model = sl.as_model(net, compile="eager")
        explain(model)
        with torch.no_grad():
            net[-1].weight.mul_(2)
        np.testing.assert_allclose(explain(model).values, explain(net).values, rtol=1e-5, atol=1e-6)

    def test_it_reaches_another_process_as_what_it_is_made_of(self):
        model = sl.as_model(network(), compile="eager")
        again = pickle.loads(pickle.dumps(model))
        assert again.compiled is not None
        np.testing.assert_array_equal(explain(again).values, explain(model).values)

    def test_it_is_off_by_default(self, monkeypatch):
        monkeypatch.setattr(torch, "compile", lambda *_, **__: pytest.fail("nobody asked"))
        explain(network())
        explain(sl.as_model(network(), compile=False))


class TestBadArguments:
    @pytest.mark.parametrize(
        ("settings", "said"),
        [
            ({"autocast": "float8"}, r"autocast must be one of 'bfloat16', 'float16'; got 'float8'"),
            ({"autocast": torch.bfloat16}, r"autocast must be one of 'bfloat16', 'float16'"),
            ({"compile": "fast"}, r"backend of torch, such as [a-z', ]*'inductor'[a-z', ]*; got 'fast'$"),
            ({"compile": 3}, r"compile must be True, False or the name of a backend; got 3"),
        ],
    )
    def test_are_refused_by_name(self, settings, said):
        with pytest.raises(InvalidArgument, match=said):
            sl.as_model(network(), **settings)

    def test_backends_for_testing_torch_are_not_suggested(self):
        with pytest.raises(InvalidArgument) as caught:
            sl.as_model(network(), compile="fast")
        assert not re.search("TESTING|debug|minifier|eager", str(caught.value))

    @pytest.mark.parametrize("settings", [{"device": "cpu"}, {"compile": True}, {"autocast": "bfloat16"}])
    def test_options_of_torch_are_for_torch_modules(self, settings):
        (name,) = settings
        for obj in (len, sl.as_model(len), sl.from_functions(values=len)):
            with pytest.raises(InvalidArgument, match=f"{name} is for torch modules; a .* runs where it runs"):
                sl.as_model(obj, **settings)


class TestDevice:
    def test_a_module_is_moved_and_explained_there(self):
        e = explain(sl.as_model(network(), device="cpu"))
        np.testing.assert_array_equal(e.values, explain(network()).values)

    @pytest.mark.parametrize("device", ["foo", "cuda:99", 3.5, "hpu", "", "meta"])
    def test_a_device_that_is_not_here_is_refused_by_name(self, device):
        with pytest.raises(
            InvalidArgument, match=rf"device must be one that torch can use here \('cpu'.*\); got {device!r}$"
        ):
            sl.as_model(network(), device=device)

    def test_a_device_that_is_full_is_not_said_to_be_missing(self, monkeypatch):
        def full(*_, **__):
            raise RuntimeError("CUDA error: out of memory")

        monkeypatch.setattr(torch, "empty", full)
        with pytest.raises(RuntimeError, match="CUDA error: out of memory"):
            sl.as_model(torch.nn.Tanh(), device="cpu")

    def test_devices_that_are_here_are_listed(self, monkeypatch):
        net = network()
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
        with pytest.raises(InvalidArgument, match=r"\('cpu', 'cuda:0', 'cuda:1', 'mps'\); got 'foo'"):
            sl.as_model(net, device="foo")

    def test_graphics_cards_are_given_more_points_at_once(self, monkeypatch):
        model = sl.as_model(network())
        assert (model.batch_bytes, model.held_bytes, model.is_asynchronous) == (DENSE_BATCH_BYTES, None, False)
        apple = dataclasses.replace(model, device=torch.device("mps"))
        assert (apple.batch_bytes, apple.held_bytes, apple.is_asynchronous) == (GRAPHICS_BATCH_BYTES, None, True)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=2**35))
        card = dataclasses.replace(model, device=torch.device("cuda"))
        assert (card.batch_bytes, card.held_bytes, card.is_asynchronous) == (2**26, 2**31, True)
        float32 = np.dtype(np.float32)
        assert automatic_batch_size(15, float32) == 32_768
        assert automatic_batch_size(16, float32, model) == 8_192  # with 64 + 64 + 2 numbers made of each point
        assert automatic_batch_size(15, float32, card) == 64 * 32_768
        assert automatic_batch_size(150_528, float32, card) == 64
        assert automatic_batch_size(150_528, float32, model) == 32

    def test_batches_follow_dense_layers_only_where_there_are_no_others(self):
        class Narrow(torch.nn.Linear):
            out_features = None

        pictures = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3), torch.nn.Flatten(), torch.nn.Linear(8, 2))
        for module in (torch.nn.Conv1d(1, 1, 1), pictures, torch.nn.Sequential(Narrow(4, 2)), torch.nn.Tanh()):
            model = sl.as_model(module.eval())
            assert model.batch_bytes == PROCESSOR_BATCH_BYTES
            assert automatic_batch_size(15, np.dtype(np.float32), model) == 16_384


@pytest.mark.parametrize("method", ["smoothgrad", "auto"])
def test_twice_an_output_is_twice_as_much_of_everything(method):
    """An output that is wanted as it is is read; one that is not must still be multiplied."""
    once, twice = (
        sl.explain(network(), X, sigma=0.5, target=target, n_samples=256, method=method) for target in (1, {1: 2.0})
    )
    for name in ("values", "standard_error", "smoothed", "prediction"):
        np.testing.assert_allclose(getattr(twice, name), 2 * getattr(once, name), rtol=1e-5)
