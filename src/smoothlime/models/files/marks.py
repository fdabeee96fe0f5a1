"""What a file is, by its first bytes. Names say nothing: anything may be called model.json."""

from __future__ import annotations

import io
import zipfile

ONNX, JSON, UBJSON, LIGHTGBM, CATBOOST = "ONNX", "JSON", "XGBoost's UBJSON", "LightGBM's text", "CatBoost's cbm"
SKOPS, PICKLE, COMPRESSED = "skops", "a pickle", "compressed, as joblib's files may be"
PROGRAM, SCRIPT, MODULE = "a program of torch.export", "a TorchScript module", "a module or weights of torch.save"

RUNS_CODE = {
    PICKLE: "a pickle runs whatever code is in it",
    COMPRESSED: "what joblib compresses is a pickle, which runs whatever code is in it",
    PROGRAM: "torch.export.load uses pickles, which run whatever code is in them",
    SCRIPT: "TorchScript is a program, which runs",
    MODULE: "torch.load uses a pickle, which runs whatever code is in it",
}
"""Kinds of files that are read only if they are trusted, and why."""

HEAD = 512
"""Bytes that are looked at."""

MARKS = {
    b"CBM1": CATBOOST,
    b"tree\n": LIGHTGBM,
    b"tree\r\n": LIGHTGBM,
    # what torch.save wrote before it wrote zip archives
    b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.": MODULE,
    b"\x80\x02": PICKLE,
    b"\x80\x03": PICKLE,
    b"\x80\x04": PICKLE,
    b"\x80\x05": PICKLE,
    b"\x1f\x8b": COMPRESSED,
    b"BZh": COMPRESSED,
    b"\xfd7zXZ": COMPRESSED,
    b"\x5d\x00\x00": COMPRESSED,
    b"\x04\x22\x4d\x18": COMPRESSED,
    b"\x78\x01": COMPRESSED,
    b"\x78\x5e": COMPRESSED,
    b"\x78\x9c": COMPRESSED,
    b"\x78\xda": COMPRESSED,
}
"""First bytes of files that are read; longer marks before shorter ones."""

ZIP = (b"PK\x03\x04", b"PK\x05\x06")

OTHERS = {
    b"\x89HDF\r\n": "HDF5, as Keras wrote; export the model to ONNX",
    b"PAR1": "Parquet, so a table; the model comes first, then the table",
    b"\x93NUMPY": "an array of NumPy, which is no model",
    b"\x7fELF": "a compiled library, which is not run",
    b"<?xml": "XML, as PMML is; export the model to ONNX",
    b"<PMML": "PMML; export the model to ONNX",
    b"binf": "XGBoost's former binary format; load it with the version that wrote it, and save it as .json or .ubj",
    b"bs64": "XGBoost's former binary format; load it with the version that wrote it, and save it as .json or .ubj",
}
"""First bytes of files that cannot be read, and what to do about them."""

AT_FOUR = {
    b"ORTM": "onnxruntime's own format; give the .onnx file that it was made of",
    b"TFL3": "TensorFlow Lite; export the model to ONNX",
}
"""The same for bytes 4 to 8."""

FIELDS_OF_ONNX = {2, 3, 4, 5, 6, 7, 8, 14, 20, 25, 26}
"""Numbers of the fields of a ModelProto, which follow its ir_version."""

KEY_LENGTHS = b"iUIlL"
"""Marks of UBJSON for the type of a length."""


def recognise(head: bytes) -> tuple[str, str]:
    """What kind of model file begins so, or "" and what it is instead; a zip archive needs `recognise_archive`."""
    mark = next((mark for mark in MARKS if head.startswith(mark)), None)
    if mark is not None:
        return MARKS[mark], ""
    if head[:1] == b"{" and head[1:2] and head[1:2] in KEY_LENGTHS:
        return UBJSON, ""
    if head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{":
        return JSON, ""
    if is_onnx_head(head):
        return ONNX, ""
    foreign = next((what for mark, what in OTHERS.items() if head.startswith(mark)), "")
    if not foreign and head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 2**40:
        foreign = "safetensors, so weights without a network: load them into the module, and export that to ONNX"
    return "", foreign or AT_FOUR.get(head[4:8], "")


def is_onnx_head(head: bytes) -> bool:
    """Whether a file begins as ONNX does: protocol buffers have no mark, but the version comes first, then a field."""
    return len(head) > 2 and head[0] == 0x08 and head[1] < 0x40 and head[2] >> 3 in FIELDS_OF_ONNX and head[2] & 5 == 0


def recognise_archive(data: bytes) -> tuple[str, str]:
    """The same for a zip archive, by the names of what is in it; an error of zipfile where it is damaged."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = set(archive.namelist())
    inner = {name.partition("/")[2] for name in names} | names
    if "schema.json" in names:
        return SKOPS, ""
    if inner & {"models/model.json", "serialized_exported_program.json"}:
        return PROGRAM, ""
    if "constants.pkl" in inner:
        return SCRIPT, ""
    if "data.pkl" in inner:
        return MODULE, ""
    if "model.weights.h5" in names:
        return "", "an archive of Keras; export the model to ONNX"
    if any(name.endswith(".npy") for name in names):
        return "", "arrays of NumPy, which are no model"
    return "", "a zip archive without a model that is known here"
