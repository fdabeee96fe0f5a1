"""A torch module as it is, with weights that are constants: gradients are wanted of its points alone.

Where weights may want gradients, torch keeps what every layer was given until a pass backward is over, although nobody
asks for it: up to a tenth of a network's time. To switch it off in the module itself would be seen by other threads,
which may be training it. So the module is copied, without its weights.

Only modules that are made of torch's own layers are: other code may keep a reference to the module or to one of its
parts, and would find the original there instead of the copy.
"""

from __future__ import annotations

from typing import Any

HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks", "_compiled_call_impl")


def constant(torch: Any, module: Any) -> Any:
    """A module that shares everything with another but the wish for gradients of its weights; or the same again.

    Torch copies modules in this way to run them in parallel (`torch.nn.parallel.replicate`).
    """
    if not isinstance(module, torch.nn.Module) or not all(map(_is_plain, module.modules())):
        return module
    return _copy(module, {})


def _is_plain(module: Any) -> bool:
    """Whether all that a module does is done by torch's own code for it."""
    kept = vars(module)
    is_torchs = type(module).__module__.startswith("torch.nn.modules.")
    return is_torchs and "forward" not in kept and not any(kept.get(name) for name in HOOKS)


def _copy(module: Any, known: dict[int, Any]) -> Any:
    """The copy of a module and, once each, of the modules and parameters within."""
    if id(module) in known:
        return known[id(module)]
    copy = known[id(module)] = object.__new__(type(module))
    vars(copy).update(vars(module))
    vars(copy)["_parameters"] = {name: _detached(each, known) for name, each in module._parameters.items()}
    within = module._modules.items()
    vars(copy)["_modules"] = {name: None if each is None else _copy(each, known) for name, each in within}
    return copy


def _detached(parameter: Any, known: dict[int, Any]) -> Any:
    """The same numbers in the same memory."""
    return None if parameter is None else known.setdefault(id(parameter), parameter.detach())
