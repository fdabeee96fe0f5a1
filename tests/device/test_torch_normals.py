"""Draws that a network's device makes by itself."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
import torch

from smoothlime.device import torch_normals
from smoothlime.draws import normals as host
from smoothlime.draws.blocks import Chunk
from smoothlime.draws.normals import Run, Sequence

CHUNK = Chunk(24, slice(0, 3), 4)
SCALE = np.array([0.5, 2.0, 10.0, 1.0, 3.0])


def run(n=24, start=7):
    return Run(Sequence.of(np.random.SeedSequence(1)), start, start + n * len(SCALE))


class OnCard(torch.Tensor):
    """A tensor that says it is on a graphics card."""

    is_cuda = True


@pytest.fixture
def card(monkeypatch):
    """A card that is handed the function, and does by NumPy what it says."""
    asked = []

    def step(rows, columns, scale, *, start, width, begin, stride):
        asked.append(rows.dtype)
        sequence = Sequence(begin % 2**64, stride % 2**64)
        at = start + rows.numpy().astype(int) * width + columns.numpy().astype(int)
        numbers = host.normals(Run(sequence, 0, int(at.max()) + 1))[at]
        return scale * torch.from_numpy(numbers).to(scale.dtype)

    monkeypatch.setattr(torch_normals, "_translated", lambda torch: step)
    monkeypatch.setattr(torch_normals, "_cannot", set())
    monkeypatch.setattr(torch_normals, "WORTH_TRANSLATING", 1)
    return asked


def expected(some, chunk):
    return chunk.by_turn(host.normals(some).reshape(-1, len(SCALE)) * SCALE).reshape(-1, chunk.count, len(SCALE))


def scale():
    return torch.from_numpy(SCALE).as_subclass(OnCard)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n", [24, 12], ids=["all draws", "the first of pairs"])
def test_long_runs_are_made_at_once_in_the_order_of_groups(card, dtype, n):
    made = torch_normals.scaled_normals(torch, run(n), CHUNK, scale(), dtype)
    assert card == [dtype]
    assert made.dtype == dtype
    tolerance = 4 * torch.finfo(dtype).eps
    np.testing.assert_allclose(np.asarray(made), expected(run(n), CHUNK), rtol=tolerance)


def test_positions_that_a_type_cannot_tell_apart_are_not_given_to_it(card, monkeypatch):
    monkeypatch.setitem(torch_normals.EXACT, "torch.float32", 24)
    made = torch_normals.scaled_normals(torch, run(), CHUNK, scale(), torch.float32)
    assert not card
    np.testing.assert_allclose(np.asarray(made), expected(run(), CHUNK), rtol=1e-6)


def test_where_nothing_translates_it_the_long_way_leads_there_too(card, monkeypatch):
    tried = []

    def fails(torch):
        tried.append(1)
        raise RuntimeError("no compiler")

    monkeypatch.setattr(torch_normals, "_translated", fails)
    for _ in range(2):
        made = torch_normals.scaled_normals(torch, run(), CHUNK, scale(), torch.float64)
        np.testing.assert_allclose(np.asarray(made), expected(run(), CHUNK), rtol=1e-13)
    assert tried == [1]  # not at every call


def test_memory_that_runs_out_is_no_missing_compiler(card, monkeypatch):
    def fails(torch):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(torch_normals, "_translated", fails)
    with pytest.raises(RuntimeError, match="out of memory"):
        torch_normals.scaled_normals(torch, run(), CHUNK, scale(), torch.float64)
    assert not torch_normals._cannot


ON_HOST = """
#include <cmath>
static double cospi(double turns) { return cos(M_PI * fmod(turns, 2.0)); }
static void sincospif(float turns, float *sine, float *cosine) {
  *sine = sin(M_PI * (double) turns);
  *cosine = cos(M_PI * (double) turns);
}
STEP
extern "C" void fill(TYPE *made, long n, long long start, long long width, long long begin, long long stride) {
  for (long i = 0; i < n; i++) made[i] = step<TYPE>(i / width, i % width, 1, start, width, begin, stride);
}
"""
"""The function that a card translates, for a processor: what it calls there, and a loop around it."""


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a compiler, g++")
@pytest.mark.parametrize("start", [0, 1, 2**40 + 1])
@pytest.mark.parametrize(("kind", "dtype", "off"), [("float", np.float32, 2**-20), ("double", np.float64, 2**-47)])
def test_the_function_makes_the_numbers_of_the_processor(tmp_path, kind, dtype, off, start):
    (tmp_path / "step.cpp").write_text(ON_HOST.replace("STEP", torch_normals.STEP).replace("TYPE", kind))
    subprocess.run(["g++", "-O1", "-shared", "-fPIC", "-o", "step.so", "step.cpp"], cwd=tmp_path, check=True)
    width, n = 1_001, 1_001 * 1_000
    some, made = Run(Sequence.of(np.random.SeedSequence(1)), start, start + n), np.empty(n, dtype)
    numbers = (start, width, some.sequence.begin, some.sequence.step)
    fill = ctypes.CDLL(str(tmp_path / "step.so")).fill
    fill(made.ctypes.data_as(ctypes.c_void_p), ctypes.c_long(n), *map(ctypes.c_longlong, numbers))
    assert np.abs(made - host.normals(some)).max() < off
