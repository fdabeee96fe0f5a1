"""The page "Bring your model": blocks of `py` run here, where the libraries are, and the table has the cases."""

import re

import keras

from ..contract.adapter_checks import PAGE, assert_rows
from . import test_equinox, test_flax, test_jax, test_keras, test_statsmodels


def blocks():
    """The first block, which makes the data, and those that are not run with the other pages; with their lines."""
    text = PAGE.read_text(encoding="utf-8")
    fences = re.finditer(r"```(\w+)\n(.*?)```", text, re.DOTALL)
    found = [(text.count("\n", 0, each.start()), *each.groups()) for each in fences]
    python = [each for each in found if each[1] == "python"]
    return [python[0], *(each for each in found if each[1] == "py")]


def test_the_blocks_run():
    names = {}
    for line, _, code in blocks():
        exec(compile("\n" * line + code, str(PAGE), "exec"), names)
    assert {"jnp", "eqx", "nnx", "keras", "sm"} <= set(names)


def test_the_table_has_each_kind():
    cases = [*test_jax.CASES, *test_equinox.CASES, *test_flax.CASES, *test_keras.CASES, *test_statsmodels.CASES]
    assert_rows(cases, "frameworks", complete=False)
    others = {"Keras model on jax", "Keras model on torch", "Keras model, any other library"} - {test_keras.KIND}
    table = PAGE.read_text(encoding="utf-8").partition("<!-- cases: frameworks -->")[2].partition("\n\n")[0]
    kinds = {line.split(" | ")[0].strip("| ") for line in table.strip().splitlines()[2:]}
    assert kinds == {case.kind for case in cases} | others
    assert keras.backend.backend() in ("jax", "torch", "numpy")
