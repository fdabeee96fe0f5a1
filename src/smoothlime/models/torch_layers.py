"""The layers of a torch module: whether they are ready to be explained, and how wide they are."""

from __future__ import annotations

from typing import Any

from ..errors import ModelError

TORCHS_OWN = "__torch__.torch.nn.modules."
"""How TorchScript begins the names of what its layers were made of, where they are torch's."""


def check_ready(torch: Any, module: Any) -> None:
    """Refuse layers whose answers would depend on chance, on their neighbours in a batch, or on the first call."""
    parts = _parts(module)
    _check_evaluation_mode(torch, module, parts)
    kept = (each for part in parts for each in (*part._parameters.values(), *part._buffers.values()))
    if any(torch.nn.parameter.is_lazy(each) for each in kept if each is not None):
        msg = (
            "the network has lazy layers without weights: its first call would make some up. Call it once on a batch,"
            " or load its weights, before it is explained"
        )
        raise ModelError(msg)


def dense_units(torch: Any, module: Any) -> int:
    """Outputs of all dense layers; 0 where there are parameters elsewhere, whose outputs are anybody's guess."""
    with_weights = [part for part in _parts(module) if part._parameters]
    if not all(type(part) is torch.nn.Linear for part in with_weights):
        return 0
    return sum(part.out_features for part in with_weights)


def _parts(module: Any) -> list[Any]:
    """A module and all within. Torch's own walk makes names on the way, which takes as long as a batch may."""
    found, waiting = {id(module): module}, [module]
    while waiting:
        for part in waiting.pop()._modules.values():
            if part is not None and id(part) not in found:
                found[id(part)] = part
                waiting.append(part)
    return list(found.values())


def _check_evaluation_mode(torch: Any, module: Any, parts: list[Any]) -> None:
    """Dropout and batch norm in training mode make an answer depend on chance or on its neighbours in a batch.

    Batch norm that keeps no statistics always does the latter.
    """
    kept = (part for part in parts if "running_mean" in part._buffers and part._buffers["running_mean"] is None)
    if any(_home(_kind(torch, part)).endswith(".batchnorm") for part in kept):
        msg = (
            "the network has a batch norm without running statistics (track_running_stats=False), so its answers depend"
            " on the rest of the batch in evaluation mode too. Give it statistics that it keeps"
        )
        raise ModelError(msg)
    if not any(_is_training(part) for part in parts):
        return
    for name, part in module.named_modules():
        if not _is_training(part):
            continue
        kind = _kind(torch, part)
        home = _home(kind)
        drops = isinstance(getattr(part, "dropout", None), int | float) and part.dropout > 0
        moody = home.endswith((".dropout", ".batchnorm")) or kind.__name__ == "RReLU" or drops
        if moody:
            where = f" (at {name!r})" if name else ""
            msg = (
                f"the network has a {kind.__name__}{where} in training mode, so its answers depend on chance or on"
                " the rest of the batch. Call model.eval() first"
            )
            raise ModelError(msg)


def _is_training(part: Any) -> bool:
    """Whether a layer is in training mode; those that TorchScript has frozen are in none."""
    return bool(getattr(part, "training", False))


def _kind(torch: Any, part: Any) -> Any:
    """Class of a layer; TorchScript has one for all, and keeps the name of what a layer was made of."""
    is_torchs_own = isinstance(part, torch.jit.ScriptModule) and part._c.qualified_name.startswith(TORCHS_OWN)
    return getattr(torch.nn, part.original_name, type(part)) if is_torchs_own else type(part)


def _home(kind: Any) -> str:
    """The module of torch that a class of layers comes from."""
    return next((each.__module__ for each in kind.__mro__ if each.__module__.startswith("torch.nn.modules")), "")
