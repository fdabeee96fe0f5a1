"""What does `explain` cost on a graphics card beyond the network's own passes? A whole call, against the bare network.

The bare network goes forward and backward over as many points, ready on the card, at the batch size that suits it best.
Everything else is measured beside it in the same rounds, by the clock on the wall with the card waited for, and shown
as a ratio to it: the median over rounds, and the interquartile range.

- pictures: a network like ResNet-50 and one like ViT-B/16, with random weights, 3 × 224 × 224 pixels as 150,528
  features, 1 row × 256, × 1,024 and × 4,096 draws, the last in three rounds. With 256 also in bfloat16 (with its error
  beside float32), and with the first two compiled, each beside the bare network in the same form. Torch's convolutions
  use TF32 by themselves, its matrix products where they are let: the second network is measured in both ways. What a
  compiler gains depends on how a network is written: the second is also compiled as one of torch's own layers (layers).
- shaped: the first network without its first layer, which makes pictures of flat points, and pictures as rows: 1 and 8
  of them × 1,024 draws.
- rows: a 15-10-10-2 ELU network, 100,000 rows × 64 draws; one: the same, 1 row × 1,024 draws.
- captum's NoiseTunnel over Saliency with as many draws, where captum is installed; of 100,000 rows for
  the first 1,000.

First of all the card's draws, and all numbers of an explanation, are compared with the processor's: they must be the
same but for rounding.

Without a graphics card everything is tiny, nothing is compiled, and it only shows that it runs: the numbers mean
nothing. Some of the cases alone go to a file of their own.

    python benchmarks/bench_gpu.py [--only resnet vit layers shaped rows one] [--rounds 7] [--no-compile] [--profile]
"""

from __future__ import annotations

from common import HERE, THREADS, fastest, interleaved, machine, markdown, write_lines  # before NumPy

# isort: split
import argparse
import copy
import cProfile
import os
import pstats
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

for _variable in THREADS:
    os.environ.pop(_variable, None)  # the processor draws with all it has: that is part of the question

try:
    import numpy as np
    import scipy  # noqa: F401 (smoothlime needs it, and would say so only half-way)
    import torch
    from gpu_networks import FULL, TINY, Sizes, Transformer, dense, of_torch_layers, resnet
    from torch import nn
except ModuleNotFoundError as err:
    sys.exit(f"bench_gpu.py needs numpy, scipy and torch: {err}")
try:
    import smoothlime as sl
except ModuleNotFoundError:
    sys.path.insert(0, str(HERE.parent / "src"))  # not installed: from the folder beside this one
    import smoothlime as sl

HAS_CARD = torch.cuda.is_available()
DEVICE = torch.device("cuda" if HAS_CARD else "cpu")
SIGMA, TARGET, SEED, DESIGN = 0.3, 1, 0, "antithetic"
BARE = "bare network"
CASES = ("resnet", "vit", "layers", "shaped", "rows", "one")
FEW_ROWS = 1_000

Plan = Callable[[], Any]


def clock() -> float:
    """Seconds, once the card has done all it was given."""
    if HAS_CARD:
        torch.cuda.synchronize()
    return time.perf_counter()


def made(network: Callable[[Sizes], nn.Module], sizes: Sizes) -> nn.Module:
    torch.manual_seed(SEED)
    return network(sizes).eval().to(DEVICE)


def bare(net: Any, points: torch.Tensor, size: int, autocast: torch.dtype | None = None) -> Plan:
    """Forward and backward over points that are there already."""

    def job() -> None:
        for part in points.split(size):
            leaf = part.detach().requires_grad_(True)
            with torch.autocast(DEVICE.type, dtype=autocast, enabled=autocast is not None):
                out = net(leaf)
            torch.autograd.grad(out[:, TARGET].sum(), leaf)

    return job


def explain(model: Any, x: np.ndarray, draws: int, **settings: Any) -> Plan:
    return lambda: sl.explain(
        model, x, sigma=SIGMA, target=TARGET, n_samples=draws, progress=False, method="smoothgrad",
        **{"design": DESIGN, **settings},
    )  # fmt: skip


def captum(net: nn.Module, x: np.ndarray, draws: int, size: int) -> Plan | None:
    """NoiseTunnel over Saliency, batched; None where captum is not installed."""
    try:
        from captum.attr import NoiseTunnel, Saliency
    except ModuleNotFoundError:
        return None
    rows = torch.as_tensor(x, dtype=torch.float32, device=DEVICE)
    tunnel, batch = NoiseTunnel(Saliency(net)), max(1, size // len(x))
    return lambda: tunnel.attribute(
        rows, nt_samples=draws, nt_samples_batch_size=batch, stdevs=SIGMA, target=TARGET, abs=False
    )


def timed(case: str, jobs: dict[str, Plan | None], rounds: int, **facts: Any) -> list[dict[str, Any]]:
    """One record per job; every ratio is to the bare network of the same round."""
    times = interleaved({name: job for name, job in jobs.items() if job is not None}, rounds, clock)
    reference = np.array(times[BARE])
    records = []
    for name, seconds in times.items():
        ratio = np.array(seconds) / reference
        low, high = np.percentile(ratio, [25, 75])
        median = float(np.median(seconds))
        records.append(
            {"case": case, "name": name, "seconds_median": median, "seconds_min": min(seconds),
             "ratio_median": float(np.median(ratio)), "ratio_min": float(ratio.min()),
             "ratio_spread": float(high - low), "rounds": rounds, **facts}
        )  # fmt: skip
        print(f"{case:24} {name:28} {1e3 * median:10.2f} ms {records[-1]['ratio_median']:7.2f} × bare", flush=True)
    return records


def pictures(name: str, network: Any, sizes: Sizes, options: argparse.Namespace) -> list[dict[str, Any]]:
    """One row of a network of pictures, in float32, in bfloat16 and compiled."""
    net, d = made(network, sizes), 3 * sizes.side**2
    x = np.random.default_rng(SEED).normal(size=(1, d))
    points = torch.randn(max(sizes.draws), d, device=DEVICE)
    size = fastest(lambda size: bare(net, points[: min(sizes.draws)], size), sizes.picture_batches, 3, clock)
    records = []
    for draws in sizes.draws:
        facts = {"batch_size": size, "rows": 1, "draws": draws, "features": d}
        jobs: dict[str, Plan | None] = {
            BARE: bare(net, points[:draws], size),
            "explain": explain(net, x, draws),
            "explain, the same batches": explain(net, x, draws, batch_size=size),
            "explain, iid": explain(net, x, draws, design="iid"),
            "captum": captum(net, x, draws, size),
        }
        records += timed(name, jobs, options.rounds, **facts)
        show_profile(jobs["explain"], options)
    records += many(name, net, x, size, sizes, options)
    records += roughly(name, net, x, points[: min(sizes.draws)], size, options)
    if options.compile and HAS_CARD:
        records += translated(name, net, x, points, size, sizes, options)
    if network is Transformer:
        torch.set_float32_matmul_precision("high")
        jobs = {
            BARE: bare(net, points, size),
            "explain": explain(net, x, len(points)),
            "captum": captum(net, x, len(points), size),
        }
        facts = {"batch_size": size, "rows": 1, "draws": len(points), "features": d}
        records += timed(f"{name}, TF32", jobs, options.rounds, **facts)
        if options.compile and HAS_CARD:
            records += translated(f"{name}, TF32", net, x, points, size, sizes, options)
        torch.set_float32_matmul_precision("highest")
    return records


def many(
    name: str, net: nn.Module, x: np.ndarray, size: int, sizes: Sizes, options: argparse.Namespace
) -> list[dict[str, Any]]:
    """Many draws of one row: what a call costs once no longer counts."""
    draws = sizes.many
    points = torch.randn(draws, x.shape[1], device=DEVICE)
    jobs = {
        BARE: bare(net, points, size),
        "explain": explain(net, x, draws),
        "captum": captum(net, x, draws, size),
    }
    return timed(name, jobs, min(3, options.rounds), batch_size=size, rows=1, draws=draws, features=x.shape[1])


def in_a_shape(sizes: Sizes, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Pictures (r, 3, side, side) as they are, beside flat rows of the same network."""
    flat, d, draws = made(resnet, sizes), 3 * sizes.side**2, max(sizes.draws)
    assert isinstance(flat, nn.Sequential)
    net = flat[1:].eval()
    records = []
    for rows in (1, 8):
        x = np.random.default_rng(SEED).normal(size=(rows, 3, sizes.side, sizes.side))
        points = torch.randn(rows * draws, 3, sizes.side, sizes.side, device=DEVICE)
        some = points[: min(sizes.draws)]
        size = fastest(lambda size, some=some: bare(net, some, size), sizes.picture_batches, 3, clock)
        jobs: dict[str, Plan | None] = {
            BARE: bare(net, points, size),
            "explain": explain(net, x, draws),
            "explain, flat rows": explain(flat, x.reshape(rows, -1), draws),
        }
        facts = {"batch_size": size, "rows": rows, "draws": draws, "features": d}
        records += timed(f"resnet50, {rows} × {draws}, in a shape", jobs, min(5, options.rounds), **facts)
        show_profile(jobs["explain"], options)
    return records


def roughly(
    name: str, net: nn.Module, x: np.ndarray, points: torch.Tensor, size: int, options: argparse.Namespace
) -> list[dict[str, Any]]:
    """The same in bfloat16, with its error."""
    half, draws = sl.as_model(net, autocast="bfloat16"), len(points)
    ours = explain(half, x, draws)
    rough, exact = ours(), explain(net, x, draws)()
    error = float(np.linalg.norm(rough.values - exact.values) / np.linalg.norm(exact.values))
    in_errors = float(np.median(np.abs(rough.values - exact.values) / exact.standard_error))
    print(f"{name}, bfloat16: slopes differ by {error:.2%}, the median by {in_errors:.2g} standard errors")
    facts = {"batch_size": size, "rows": 1, "draws": draws, "features": x.shape[1]}
    facts |= {"relative_error": error, "median_error_in_standard_errors": in_errors}
    return timed(
        f"{name}, bfloat16",
        {BARE: bare(net, points, size, torch.bfloat16), "explain": ours},
        options.rounds,
        **facts,
    )


def translated(
    name: str,
    net: nn.Module,
    x: np.ndarray,
    points: torch.Tensor,
    size: int,
    sizes: Sizes,
    options: argparse.Namespace,
) -> list[dict[str, Any]]:
    """The same compiled, beside the bare network in both forms."""
    frozen = copy.deepcopy(net).requires_grad_(False)  # else a compiled pass works out weight gradients too
    quick, model, records = torch.compile(frozen), sl.as_model(net, compile=True), []
    start = clock()
    explain(model, x, min(sizes.draws))()
    first = clock() - start
    print(f"{name}, compiled: the first call took {first:.1f} s")
    for draws in sizes.draws:
        facts = {"batch_size": size, "rows": 1, "draws": draws, "features": x.shape[1], "first_call": first}
        jobs: dict[str, Plan | None] = {
            BARE: bare(quick, points[:draws], size),
            "bare network, not compiled": bare(net, points[:draws], size),
            "explain": explain(model, x, draws),
        }
        records += timed(f"{name}, compiled", jobs, options.rounds, **facts)
    return records


def in_both_ways(name: str, network: Any, sizes: Sizes, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Compiled alone, with matrix products in float32 and in TF32."""
    if not (options.compile and HAS_CARD):
        return []
    net, d = made(network, sizes), 3 * sizes.side**2
    x = np.random.default_rng(SEED).normal(size=(1, d))
    points = torch.randn(max(sizes.draws), d, device=DEVICE)
    records = translated(name, net, x, points, max(sizes.picture_batches), sizes, options)
    torch.set_float32_matmul_precision("high")
    records += translated(f"{name}, TF32", net, x, points, max(sizes.picture_batches), sizes, options)
    torch.set_float32_matmul_precision("highest")
    return records


def tables(name: str, rows: int, draws: int, sizes: Sizes, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Rows of the small network."""
    net = made(dense, sizes)
    x = np.random.default_rng(SEED).normal(size=(rows, 15))
    points = torch.randn(rows * draws, 15, device=DEVICE)
    batches = [size for size in sizes.row_batches if size <= rows * draws] or [rows * draws]
    size = fastest(lambda size: bare(net, points, size), batches, 3, clock)
    jobs: dict[str, Plan | None] = {
        BARE: bare(net, points, size),
        "explain": explain(net, x, draws),
        "explain, the same batches": explain(net, x, draws, batch_size=size),
    }
    facts = {"batch_size": size, "draws": draws, "features": 15}
    if rows <= FEW_ROWS:
        jobs["captum"] = captum(net, x, draws, size)
    records = timed(name, jobs, options.rounds, rows=rows, **facts)
    if rows > FEW_ROWS:  # captum takes minutes for all of them
        some = points[: FEW_ROWS * draws]
        jobs = {BARE: bare(net, some, size), "explain": explain(net, x[:FEW_ROWS], draws)}
        jobs["captum"] = captum(net, x[:FEW_ROWS], draws, size)
        records += timed(f"{name}, some", jobs, min(3, options.rounds), rows=FEW_ROWS, **facts)
    show_profile(jobs["explain"], options)
    return records


def check_draws() -> float:
    """Largest difference between draws that the card makes and the processor's, in standard deviations."""
    from smoothlime.device.torch_normals import scaled_normals
    from smoothlime.draws.blocks import Chunk
    from smoothlime.draws.normals import Run, Sequence, normals

    n, d = 2**7, 2**15
    run = Run(Sequence.of(np.random.SeedSequence(SEED)), 2**40 + 1, 2**40 + 1 + n * d)
    scale = torch.ones(d, dtype=torch.float64, device=DEVICE)
    made = scaled_normals(torch, run, Chunk(n, slice(0, 1), n), scale, torch.float32)
    away = float(np.abs(made.cpu().numpy().reshape(-1) - normals(run)).max())
    if away > 2**-20:
        sys.exit(f"the card makes other draws than the processor: they differ by {away:.2g}")
    return away


def check_results() -> float:
    """Largest difference between an explanation on the card and on the processor, as a share of its largest number."""
    torch.manual_seed(SEED)
    d = 2**17
    net = nn.Sequential(nn.Linear(d, 8), nn.Tanh(), nn.Linear(8, 3)).eval()
    x = np.random.default_rng(SEED).normal(size=(1, d))
    there = explain(net.to(DEVICE), x, 64)()
    here = explain(net.cpu(), x, 64)()
    away = 0.0
    for name in ("values", "standard_error", "prediction", "smoothed", "radius", "fidelity"):
        found, known = getattr(there, name), getattr(here, name)
        away = max(away, float(np.abs(found - known).max() / np.abs(known).max()))
    if away > 2**-12:
        sys.exit(f"the card explains otherwise than the processor: by {away:.2g}")
    return away


def show_profile(job: Plan | None, options: argparse.Namespace) -> None:
    """Where the host spends its time in one call; the card runs beside it, and is waited for where sums are fetched."""
    if options.profile and job is not None:
        profile = cProfile.Profile()
        profile.runcall(job)
        pstats.Stats(profile).sort_stats("tottime").print_stats(14)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=CASES, help="some of the cases")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--no-compile", dest="compile", action="store_false", help="leave torch.compile out")
    parser.add_argument("--profile", action="store_true", help="also show where one call spends its time")
    options = parser.parse_args()
    warnings.simplefilter("ignore", sl.errors.LostPrecision)  # bfloat16 is measured here, not complained about
    sizes = FULL if HAS_CARD else TINY
    card = torch.cuda.get_device_name() if HAS_CARD else "none: tiny sizes, the numbers mean nothing"
    facts = machine("torch", "captum") | {"seed": SEED, "card": card, "design": DESIGN}
    facts |= {"draws_differ": check_draws(), "results_differ": check_results()}
    print(f"graphics card: {card}")
    if captum(nn.Identity(), np.zeros((1, 1)), 1, 1) is None:
        print("captum is not installed: it is left out")
    cases: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "resnet": lambda: pictures("resnet50", resnet, sizes, options),
        "vit": lambda: pictures("vit_b16", Transformer, sizes, options),
        "layers": lambda: in_both_ways("vit_b16, torch's layers", of_torch_layers, sizes, options),
        "shaped": lambda: in_a_shape(sizes, options),
        "rows": lambda: tables("rows", sizes.rows, 64, sizes, options),
        "one": lambda: tables("one", 1, 1_024, sizes, options),
    }
    records = []
    for name in options.only or CASES:
        records += [each | facts for each in cases[name]()]
        if HAS_CARD:
            torch.cuda.empty_cache()
    some = "_".join(["gpu", *(options.only or ())])
    path = write_lines(some if HAS_CARD else "gpu_quick", records)
    header = ("case", "who", "ms", "× bare", "IQR")
    lines = [
        (each["case"], each["name"], f"{1e3 * each['seconds_median']:.2f}", f"{each['ratio_median']:.2f}",
         f"{each['ratio_spread']:.2f}")
        for each in records
    ]  # fmt: skip
    print(markdown(header, lines))
    print(f"\n{card}; {facts['cpu']}, {facts['cores']} cores; {facts['versions']}; written to {path.name}")


if __name__ == "__main__":
    main()
