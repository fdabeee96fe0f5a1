"""Reads damaged copies of model files, in a process of its own: a crash must not take the tests with it.

`python damage.py FILE COUNT ...`: each file is cut off, has bits flipped, bytes replaced, and parts overwritten by
other parts of itself, so many times in all. What is read is asked for outputs. Prints what happened, as JSON.
"""

import json
import random
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

import smoothlime as sl
from smoothlime.errors import SmoothlimeError
from smoothlime.models.files import read_model

ROWS = np.random.default_rng(0).normal(size=(60, 3)) * 3


def cut(data, rng):
    return data[: rng.randrange(len(data))]


def flip(data, rng):
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return data


def replace(data, rng):
    for _ in range(20):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return data


def overwrite(data, rng):
    there, here, size = rng.randrange(len(data)), rng.randrange(len(data)), rng.randrange(1, 40)
    data[there : there + size] = data[here : here + size]
    return data


def happens(path):
    try:
        model, _ = read_model(path)
    except SmoothlimeError as err:
        return "refused" if repr(str(path)) in str(err) else f"refused without its name: {err}"
    try:
        sl.as_model(model).values(ROWS)
    except Exception:  # numbers may have changed in any way, and the library says so
        return "read"
    return "read"


def main(given):
    warnings.simplefilter("ignore")
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for file, count in zip(given[::2], given[1::2], strict=True):
            data, rng, seen = Path(file).read_bytes(), random.Random(7), Counter()
            for i in range(int(count)):
                path = Path(folder) / f"damaged_{i}"
                path.write_bytes((cut, flip, replace, overwrite)[i % 4](bytearray(data), rng))
                print(f"{file} {i}", file=sys.stderr, flush=True)
                seen[happens(path)] += 1
                path.unlink()
            found[Path(file).name] = seen
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
