import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from smoothlime.batch.blocks import Run, cut, rows_per_block


@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=12), st.integers(1, 25), st.sets(st.integers(0, 300), max_size=9)
)
@settings(max_examples=200, deadline=None)
def test_blocks_hold_every_row_once_however_the_table_comes(lengths, size, bad):
    runs, start = [], 0
    for n in lengths:
        at = np.arange(start, start + n)
        good = at[~np.isin(at, list(bad))]
        failed = tuple((int(i), "bad") for i in at if i in bad)
        runs.append(Run(start, n, pa.table({"a": good}), good, failed))
        start += n
    for wanted in (lambda _: True, lambda index: index % 2 == 0):
        blocks = list(cut(runs, size, wanted))
        assert [block.index for block in blocks] == [i for i in range(-(-start // size)) if wanted(i)]
        for block in blocks:
            run = block.run
            expected = np.arange(block.index * size, min(start, (block.index + 1) * size))
            assert (run.start, run.count) == (expected[0], len(expected))
            assert sorted([*run.positions, *(at for at, _ in run.failed)]) == expected.tolist()
            assert run.rows.column("a").to_pylist() == run.positions.tolist()


def test_blocks_are_bounded_by_cells():
    assert [rows_per_block(d) for d in (1, 20, 300, 10_000, 10**6)] == [8_192, 8_192, 4_096, 128, 64]
