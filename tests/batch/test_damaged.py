"""Folders of results that something else has written to: what is damaged is made again, or refused, never mixed in."""

import json

import numpy as np
import pytest

import smoothlime as sl
from smoothlime.batch.merge import merge

from . import batch_models
from .conftest import assert_same_bits

SETTINGS = {"key": "id", "columns": ["a", "b", "c"], "n_samples": 64, "sigma": 0.5, "block_rows": 256}


@pytest.fixture
def explained(parquet, tmp_path):
    """Explains the table to a folder, by its name."""

    def explain(name, **other):
        sl.explain_table(batch_models.wave, parquet, tmp_path / name, **SETTINGS | other)
        return tmp_path / name

    return explain


def part(folder, index):
    return folder / f"part-{index:08d}.parquet"


def test_a_part_of_another_job_is_made_again(explained):
    small = {"block_rows": 40}
    alone, out, other = explained("alone", **small), explained("out", **small), explained("other", seed=1, **small)
    index = next(i for i in range(25) if part(out, i).stat().st_size == part(other, i).stat().st_size)
    part(out, index).write_bytes(part(other, index).read_bytes())
    with pytest.raises(sl.errors.UnreadableFile, match="is missing, or is another"):
        sl.load(out)
    assert_same_bits(alone, explained("out", **small))


def test_parts_that_changed_places_are_made_again(explained):
    alone, out = explained("alone"), explained("out")
    one, two = part(out, 0).read_bytes(), part(out, 1).read_bytes()
    part(out, 0).write_bytes(two)
    part(out, 1).write_bytes(one)
    explained("out")
    np.testing.assert_array_equal(sl.load(out).values, sl.load(alone).values)


def test_a_bit_that_flipped_is_seen(explained, tmp_path):
    out = explained("out")
    values = sl.load(out).values
    data = bytearray(part(out, 2).read_bytes())
    at = data.index(values[512:513, 1].tobytes())
    data[at] ^= 1
    part(out, 2).write_bytes(data)
    for read in (sl.load, lambda folder: merge(folder, tmp_path / "merged.parquet")):
        with pytest.raises(sl.errors.UnreadableFile, match=r"part-00000002.*Remove it, and explain the table again"):
            read(out)
    part(out, 2).unlink()
    np.testing.assert_array_equal(sl.load(explained("out")).values, values)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text.replace(b'"rows": 256', b'"rows": 255', 1),
        lambda text: text.replace(b'"rows": 256', b'"rows": "256"', 1),
        lambda text: text.replace(b'"block": 2', b'"block": 99', 1),
        lambda text: b"\xff\xfe\n[1]\n{}\n\n" + text,
        lambda text: text[:-9] + b"\n",
        lambda text: b"",
    ],
    ids=["counts", "type", "block", "garbage", "short", "empty"],
)
def test_a_damaged_line_of_the_journal_costs_its_block_alone(explained, damage):
    alone, out = explained("alone"), explained("out")
    journal = out / "_journal.jsonl"
    journal.write_bytes(damage(journal.read_bytes()))
    assert_same_bits(alone, explained("out"))
    np.testing.assert_array_equal(sl.load(out).values, sl.load(alone).values)


@pytest.mark.parametrize(
    "change",
    [{"count": 900}, {"asked": None}, {"levels": 3}, {"runs": 3}, {"finished": 3}, {"table": {}}, {"version": "one"}],
    ids=lambda change: next(iter(change)),
)
def test_a_manifest_that_was_edited_is_refused(explained, change):
    out = explained("out")
    manifest = out / "_manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | change))
    for read in (sl.load, lambda folder: explained(folder.name)):
        with pytest.raises(sl.errors.UnreadableFile, match="is damaged, or was edited"):
            read(out)
    explained("out", resume=False)
    assert len(sl.load(out)) == 1_000
