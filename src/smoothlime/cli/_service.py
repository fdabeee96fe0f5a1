"""The service of `smoothlime serve --api`: models by name, limits, and who may ask."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from .._core.optional import require
from ..errors import InvalidArgument
from ..models import as_asked
from ._inputs import ProblemOptions, split_names, target_of
from ._messages import say
from ._tables import load_tables, nearest

if TYPE_CHECKING:
    from ..app.api import Limits, Served


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """What was typed of a service."""

    api: tuple[str, ...]
    token_env: str | None
    allow_host: tuple[str, ...]
    rows: int | None
    size: int | None
    max_samples: int | None
    seconds: float | None
    waiting: int | None
    workers: int | None

    def refuse_for_a_page(self) -> None:
        """An error where something was typed that is not for a page."""
        for option in OPTIONS:
            if getattr(self, option.name or "") not in (None, ()):
                msg = f"{max(option.opts, key=len)} is for a service: give --api NAME=MODEL with it"
                raise InvalidArgument(msg)

    def run(self, problem: ProblemOptions, *, host: str, port: int) -> None:
        """Answer requests until told to stop."""
        require("starlette", extra="app", to="serve models")
        from ..app.api import create_app
        from ..app.api.run import run_app
        from ..app.live.server import address, listen

        _refuse_of_pages(problem)
        token, limits = _token(self.token_env, host), self._limits()
        models = _models(_pairs(self.api), problem)
        app = create_app(models, limits=limits, token=token, hosts=(*self.allow_host, host))
        with listen(host, port) as bound:
            said = f"{', '.join(models)} at {address(bound, host)}"
            run_app(app, bound, seconds=limits.seconds, started=lambda: say(said))
        say("stopped")

    def _limits(self) -> Limits:
        from ..app.api import Limits

        names = [each.name for each in dataclasses.fields(Limits)]
        return Limits(**{name: given for name in names if (given := getattr(self, name)) is not None})


OPTIONS = (
    click.Option(["--api"], multiple=True, metavar="NAME=MODEL",
                 help="Answer requests for this model under this name; may be given several times. --background then"
                 " says how its features vary, --target what is explained: for all models, or name=... for each,"
                 " separated by commas."),
    click.Option(["--token-env"], metavar="NAME",
                 help="Environment variable that holds the token of requests; needed where others reach --host."),
    click.Option(["--allow-host"], multiple=True, metavar="NAME", help="Name that requests may give to this address."),
    click.Option(["--max-rows", "rows"], type=int, help="Instances of one request; 1000 by default."),
    click.Option(["--max-bytes", "size"], type=int, help="Size of one request; 1 MiB by default."),
    click.Option(["--max-samples"], type=int, help="Draws of one instance; 20000 by default."),
    click.Option(["--timeout", "seconds"], type=float, help="Seconds of one request; 30 by default."),
    click.Option(["--waiting"], type=int, help="Requests that may wait; more are told to come again. 128 by default."),
    click.Option(["--workers"], type=int, help="Requests that are worked on at once; up to 4 by default."),
)  # fmt: skip


def service_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options of `ServiceOptions` to a command, which gets them as `service`."""

    @functools.wraps(command)
    def with_service(**given: Any) -> None:
        taken = {each.name: given.pop(each.name) for each in dataclasses.fields(ServiceOptions)}
        command(service=ServiceOptions(**taken), **given)

    params = getattr(with_service, "__click_params__", [])
    with_service.__click_params__ = [*reversed(OPTIONS), *params]  # type: ignore[attr-defined]  # as click.option does
    return with_service


def _models(specs: Mapping[str, str], problem: ProblemOptions) -> dict[str, Served]:
    """The models, each with its background."""
    from ..app.api import Served

    files = _by_model(problem.background, specs, "--background")
    targets = _by_model(problem.target, specs, "--target")
    found = {}
    for name, spec in specs.items():
        if name not in files:
            msg = f"--background has no file for {name!r}: a table of rows like those that will be asked about"
            raise InvalidArgument(msg)
        model = problem.models.load(spec)
        adapted = as_asked(model, problem.output)
        known = getattr(adapted, "feature_names", None) or ()
        tables = load_tables(files[name], None, split_names(problem.columns), known)
        found[name] = Served(
            model, tables.rows, sigma=problem.sigma, output=problem.output,
            target=target_of(targets.get(name), adapted.outputs), scale=problem.scale_of(tables),
            fixed=nearest(split_names(problem.fixed, "--fixed"), tables.names),
        )  # fmt: skip
    return found


def _refuse_of_pages(problem: ProblemOptions) -> None:
    """An error where something was typed that is not for a service."""
    if problem.model is not None:
        msg = (
            f"give --api NAME=MODEL for a service, or MODEL and TABLE for a page, not both; got MODEL {problem.model!r}"
        )
        raise InvalidArgument(msg)
    for option, given in (("--rows", problem.most is not None), ("--raw-units", problem.raw_units)):
        if given:
            msg = f"{option} is for a page; a service takes its rows from requests, and sigma in units of --background"
            raise InvalidArgument(msg)


def _token(name: str | None, host: str) -> str | None:
    """The token, which a service that others reach must have."""
    from ..app.api.guards import check_token, is_loopback

    token = None if name is None else os.environ.get(name)
    if name is not None and not token:
        msg = f"--token-env names {name!r}, and there is no such environment variable, or it is empty"
        raise InvalidArgument(msg)
    if token is None and not is_loopback(host):
        msg = (
            f"others can reach --host {host!r}, so requests need a token: --token-env NAME, the environment variable"
            " that holds it"
        )
        raise InvalidArgument(msg)
    check_token(token)
    return token


def _pairs(given: tuple[str, ...]) -> dict[str, str]:
    """What was typed as NAME=MODEL, by name."""
    found: dict[str, str] = {}
    for each in given:
        name, separator, value = each.partition("=")
        if not (separator and name and value):
            msg = f"--api must be NAME=MODEL, such as credit=model.ubj; got {each!r}"
            raise InvalidArgument(msg)
        if name in found:
            msg = f"--api names {name!r} twice"
            raise InvalidArgument(msg)
        found[name] = value
    return found


def _by_model(given: str | None, specs: Mapping[str, str], option: str) -> dict[str, str]:
    """What each model has of an option: its own, typed as name=..., or what all have."""
    if given is None:
        return {}
    parts = [each.partition("=") for each in split_names(given, option)]
    if all(name in specs for name, _, _ in parts):
        return {name: value for name, _, value in parts}
    return dict.fromkeys(specs, given)
