"""The whole reproduction: data, networks, every figure, every claim, the report."""

from __future__ import annotations

import contextlib
import json
import platform
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from .._core.optional import require
from .._core.validate import check_count
from .._core.version import versions
from ..errors import DataUnavailable, InvalidArgument, UnwritableFile
from . import beyond, claims, datasets, figures, networks, report, side_by_side
from . import peers as other_libraries
from .figures import title_of
from .scale import FULL, QUICK, Scale
from .study import NAMES, TARGET, Study

PAPER_ACCURACY = {
    ("simulated", "good"): 0.995,
    ("bankruptcy", "good"): 0.963,
    ("shopping", "good"): 0.998,
    ("bankruptcy", "weak"): 0.86,
}

QUALITIES = ("good", "fewer", "weak")

Figure = Callable[[Study], dict[str, Any]]
Say = Callable[[str], None]


def steps() -> dict[str, Figure]:
    """Every figure by name, in the order of the report."""
    found: dict[str, Figure] = {
        "figure1": figures.figure1,
        "figure2": figures.figure2,
        "figure3": figures.figure3,
    }
    twins = ("bankruptcy", "simulated", "shopping")
    found |= {f"figure4-{name}": partial(figures.figure4, name=name) for name in twins}
    found |= {f"figure5-{name}": partial(figures.figure5, name=name) for name in twins}
    return found | {
        "convergence": beyond.convergence,
        "lipschitz": beyond.lipschitz,
        "regularised": beyond.regularised,
        **{f"peers-{name}": partial(peers, name=name) for name in NAMES},
    }


def reproduce(
    folder: str | Path, *, quick: bool = False, only: Sequence[str] = (), seed: int = 0, say: Say = print
) -> dict[str, Any]:
    """Run what is asked for, write the report, and return its results.

    Parameters
    ----------
    folder
        Where the report goes. Curves are kept there, so that an interrupted run goes on where it stopped.
    quick
        Every figure at small scale.
    only
        Names of figures, such as `figure3`, `figure4` for it and its twins; claims are judged in full runs only.
    say
        Called with one line of progress at a time.
    """
    wanted, first = _wanted(only), check_count(seed, "seed", at_least=0)
    _check_installed(wanted)
    _check_folder(folder, is_partial=bool(only), is_quick=quick)
    started, clock = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), time.monotonic()
    target = Path(folder)
    say("reading the data and training the networks")
    study = prepare(QUICK if quick else FULL, first, target, say)
    done, planned = {}, [*wanted, *([] if only else ["claims"])]
    for i, (name, make) in enumerate(wanted.items()):
        begun = time.monotonic()
        done[name] = make(study)
        study.seconds[name] = round(time.monotonic() - begun, 2)
        say(f"[{i + 1}/{len(wanted)}] {name}: {study.seconds[name]:.0f} s{_forecast(study, planned, i)}")
    judged = []
    if not only:
        begun = time.monotonic()
        say(f"judging {len(claims.CLAIMS)} claims")
        judged = claims.judge(study)
        study.seconds["claims"] = round(time.monotonic() - begun, 2)
    results = {
        "figures": done,
        "claims": judged,
        "accuracy": [_accuracy(study, name, quality) for name in NAMES for quality in QUALITIES],
        "run": {
            "seed": study.seed,
            "scale": study.scale.name,
            "versions": versions() | _versions_of_peers(),
            "seconds": round(time.monotonic() - clock, 1),
            "steps": study.seconds,
            "kept": sum(origin == "earlier" for origin in study.origin.values()),
            "stand_ins": [title_of(study, name) for name in NAMES if study.data[name].source == "stand-in"],
            "started": started,
            "rows": _rows(study),
            "cpu": platform.processor() or platform.machine(),
        },
    }
    try:
        path = report.write(results, target)
    except OSError as err:
        msg = f"the report cannot be written to {str(target)!r}: {err.strerror or err}"
        raise UnwritableFile(msg) from err
    say(f"the report is in {path}")
    return results


def _rows(study: Study) -> dict[str, dict[str, int]]:
    """How many rows there are behind what was measured, by data set; stand-ins may have fewer than were asked for."""
    scale = study.scale
    asked = {
        "equivalence": scale.equivalence_rows,
        "equivalence, shared draws": 4 * scale.shared_rows,
        "robustness": scale.robustness_rows,
        "robustness, shared draws": min(scale.shared_rows, scale.robustness_rows),
        "limits": min(scale.limit_rows, scale.robustness_rows),
    }
    return {what: {name: len(study.rows(name, most)) for name in NAMES} for what, most in asked.items()}


def _check_installed(wanted: Iterable[str]) -> None:
    """Refuse a run that would end, after its longest part, for want of a library."""
    require("matplotlib", extra="plot", to="draw the figures of the paper")
    if any(name.startswith("peers-") for name in wanted):
        other_libraries.check_installed()


def _check_folder(folder: str | Path, *, is_partial: bool, is_quick: bool) -> None:
    """Refuse a folder that cannot be written to, and to write a lesser report over a full one."""
    if not str(folder):
        msg = "--out must name a folder; got an empty name"
        raise InvalidArgument(msg)
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as err:
        msg = f"the report cannot be written to {str(folder)!r}: {err.strerror or err}"
        raise UnwritableFile(msg) from err
    path = Path(folder) / "results.json"
    try:
        there = json.loads(path.read_text(encoding="utf-8"))
        is_full = there["run"]["scale"] == "full" and bool(there["claims"])
    except (OSError, ValueError, TypeError, KeyError):
        return
    if is_full and (is_partial or is_quick):
        msg = f"{str(folder)!r} holds the report of a full run; choose another folder with --out"
        raise InvalidArgument(msg)


def _versions_of_peers() -> dict[str, str]:
    found = {}
    for name in ("torch", "scikit-learn", "captum", "shap", "lime", "matplotlib"):
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def prepare(scale: Scale, seed: int, folder: Path | None, say: Say = print) -> Study:
    """Load the data and train the networks; what cannot be had is replaced, loudly."""
    data = {}
    for name in NAMES:
        try:
            data[name] = getattr(datasets, name)()
        except DataUnavailable as error:
            data[name] = datasets.stand_in(name)  # type: ignore[arg-type]  # Simulated is made here, never fetched
            say(f"!! {error}\n!! A stand-in takes its place; every number from it is labelled so.")
    trained = {
        (name, quality): networks.train(data[name], **networks.RECIPES[name][quality])
        for name in NAMES
        for quality in ("good", "weak")
    }
    for name in NAMES:  # as good but for the epochs: what the weak ones are not
        recipe = networks.RECIPES[name]["good"] | {"epochs": networks.RECIPES[name]["weak"]["epochs"]}
        trained[name, "fewer"] = networks.train(data[name], **recipe)
    store = None
    if folder is not None:
        store = folder / "kept"
        try:
            store.mkdir(parents=True, exist_ok=True)
        except OSError as err:
            msg = f"--out: {str(folder)!r} cannot be made: {err}"
            raise InvalidArgument(msg) from err
    return Study(scale, seed, data, trained, store)


def peers(study: Study, name: str) -> dict[str, Any]:
    """Other explainers on the same rows and network."""
    data, used = study.data[name], _versions_of_peers()
    answers = "-".join(f"{each}{used[each]}" for each in ("captum", "shap", "lime"))  # another version, other answers
    found = study.keep(
        f"peers-{name}-{answers}",
        lambda: side_by_side.side_by_side(
            study.network(name).model, data.x_train, study.rows(name, study.scale.peer_rows), target=TARGET,
            sigma=1.0, feature_names=data.feature_names, seeds=study.scale.peer_seeds,
            n_samples=study.scale.peer_samples, neighbours=5, seed=study.seed,
        ),
    )  # fmt: skip
    title = title_of(study, name)
    return {
        "title": f"Side by side with other explainers on {title}",
        "caption": f"{found['rows']} test rows, the good network, σ² = 1. Attributions of different kinds (slopes,"
        " contributions) are compared by the rank of their size and by their shape, each scaled to L1 length 1. Change"
        " with the seed: spread over seeds. Change with the row: largest distance to five neighbours N(x, 0.01·I), all"
        " with the same draws. " + found["notes"][0],
        "settings": found["settings"],
        "paper": "beyond the paper",
        "panels": side_by_side.panels(found),
    }


def _wanted(only: Sequence[str]) -> dict[str, Figure]:
    everything = steps()
    for name in only:
        if not any(each == name or each.startswith(f"{name}-") for each in everything):
            msg = f"--only: there is no {name!r}; choose from {', '.join(everything)}"
            raise InvalidArgument(msg)
    if not only:
        return everything
    return {
        name: make
        for name, make in everything.items()
        if any(name == each or name.startswith(f"{each}-") for each in only)
    }


def _forecast(study: Study, planned: Sequence[str], i: int) -> str:
    """What is left, judged by how the share of a full run that is done compares with the time it took."""
    left = sum(COST.get(name.partition("-")[0], 0.0) for name in planned[i + 1 :])
    spent = sum(COST.get(name.partition("-")[0], 0.0) for name in planned[: i + 1])
    if not left or not spent:
        return ""
    seconds = sum(study.seconds.values()) * left / spent
    return f"; about {seconds / 60:.0f} min left" if seconds >= 90 else f"; about {seconds:.0f} s left"


COST = {
    "figure1": 0.01,
    "figure2": 1.0,
    "figure3": 2.0,
    "figure4": 2.0,
    "figure5": 1.0,
    "convergence": 0.3,
    "lipschitz": 0.1,
    "regularised": 0.05,
    "peers": 2.0,
    "claims": 3.0,
}
"""Relative costs of the figures in a full run, and of what claims ask for beyond them: limits, above all.

What several share is counted where it comes first.
"""


def _accuracy(study: Study, name: str, quality: str) -> dict[str, Any]:
    network, data = study.network(name, quality), study.data[name]
    return {
        "dataset": title_of(study, name),
        "source": data.source,
        "model": quality,
        "epochs": network.epochs,
        "accuracy": network.accuracy,
        "balanced_accuracy": network.balanced_accuracy,
        "auc": network.auc,
        "majority": network.majority,
        "paper": PAPER_ACCURACY.get((name, quality)) if name in study.real else None,
        "bayes": datasets.bayes_accuracy(1.0) if name == "simulated" else None,
        "note": data.note,
    }
