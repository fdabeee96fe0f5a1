"""A torch module as it is, with weights that are constants: gradients are wanted of its points alone.

Where weights may want gradients, torch keeps what every layer was given until a pass backward is over, although nobody
asks for it: up to a tenth of a small network's time. To switch it off in the module itself would be seen by other
threads, which may be training it.
"""

from __future__ import annotations

from typing import Any


def constant(torch: Any, module: Any) -> Any:
    """A module that shares everything with another but the wish for gradients of its weights.

    Torch copies modules in this way to run them in parallel (`torch.nn.parallel.replicate`). Weights that a module
    keeps besides its parameters are used as they are; so are modules that were compiled, whose code knows its own
    parameters, and what stands in for a module.
    """
    if not isinstance(module, torch.nn.Module) or any(_is_compiled(torch, part) for part in module.modules()):
        return module
    return _twin(torch, module, {})


def _is_compiled(torch: Any, module: Any) -> bool:
    return isinstance(module, torch.jit.ScriptModule) or type(module).__module__.startswith("torch._dynamo")


def _twin(torch: Any, module: Any, known: dict[int, Any]) -> Any:
    """The copy of a module and, once each, of the modules within."""
    if id(module) in known:
        return known[id(module)]
    twin = known[id(module)] = object.__new__(type(module))
    within = module._modules.items()
    vars(twin).update(
        vars(module)
        | {
            "_parameters": {name: _detached(torch, each) for name, each in module._parameters.items()},
            "_buffers": dict(module._buffers),
            "_modules": {name: None if each is None else _twin(torch, each, known) for name, each in within},
        }
    )
    return twin


def _detached(torch: Any, parameter: Any) -> Any:
    """The same numbers in the same memory; what is not made yet stays as it is."""
    is_made = parameter is not None and not torch.nn.parameter.is_lazy(parameter)
    return parameter.detach() if is_made else parameter
