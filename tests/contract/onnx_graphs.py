"""Small ONNX models, made node by node."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(5)
W1, B1, W2, B2 = RNG.normal(size=(4, 6)), RNG.normal(size=6), RNG.normal(size=(6, 3)), RNG.normal(size=3)
OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
TYPES = {"float": TensorProto.FLOAT, "double": TensorProto.DOUBLE, "float16": TensorProto.FLOAT16,
         "int64": TensorProto.INT64, "uint8": TensorProto.UINT8, "string": TensorProto.STRING}  # fmt: skip


def whole(nodes, inputs, outputs, constants=None):
    """A model of nodes (op, inputs, outputs, attributes) and of (name, type, shape) for what goes in and out."""
    made = [helper.make_node(op, i, o, domain="ai.onnx.ml" if a.pop("ml", False) else "", **a) for op, i, o, a in nodes]
    ends = [[helper.make_tensor_value_info(n, TYPES[t], s) for n, t, s in each] for each in (inputs, outputs)]
    held = [numpy_helper.from_array(value, name) for name, value in (constants or {}).items()]
    return checked(helper.make_graph(made, "g", *ends, held))


def checked(graph):
    return helper.make_model(graph, opset_imports=OPSETS, ir_version=9)


def layers(dtype):
    return {name: value.astype(dtype) for name, value in (("W1", W1), ("B1", B1), ("W2", W2), ("B2", B2))}


NETWORK = [
    ("MatMul", ["x", "W1"], ["a"], {}), ("Add", ["a", "B1"], ["b"], {}), ("Tanh", ["b"], ["c"], {}),
    ("MatMul", ["c", "W2"], ["d"], {}), ("Add", ["d", "B2"], ["y"], {}),
]  # fmt: skip


def network(kind="float", batch=None):
    """4 → 6 → 3 with tanh."""
    dtype = {"float": np.float32, "double": np.float64, "float16": np.float16}[kind]
    nodes = [(op, i, o, dict(a)) for op, i, o, a in NETWORK]
    return whole(nodes, [("x", kind, [batch, 4])], [("y", kind, [batch, 3])], layers(dtype))


def logits(x):
    """What the network returns."""
    return np.tanh(np.asarray(x, dtype=np.float64) @ W1 + B1) @ W2 + B2


def classifier(zipmap=False):
    """Labels and probabilities, these as an array or as a list of dicts."""
    nodes = [(op, i, o, dict(a)) for op, i, o, a in NETWORK]
    nodes += [("Softmax", ["y"], ["p"], {"axis": 1}), ("ArgMax", ["y"], ["label"], {"axis": 1, "keepdims": 0})]
    ends = [("label", "int64", [None]), ("p", "float", [None, 3])]
    if not zipmap:
        return whole(nodes, [("x", "float", [None, 4])], ends, layers(np.float32))
    nodes += [("ZipMap", ["p"], ["dicts"], {"ml": True, "classlabels_strings": ["red", "green", "blue"]})]
    model = whole(nodes, [("x", "float", [None, 4])], ends[:1], layers(np.float32))
    out = model.graph.output.add()
    out.name = "dicts"
    out.type.sequence_type.elem_type.map_type.key_type = TensorProto.STRING
    out.type.sequence_type.elem_type.map_type.value_type.tensor_type.elem_type = TensorProto.FLOAT
    return model


def of_columns(*kinds):
    """Columns a, b, ... of their own: their sum, of words the number of the word among x, y, z."""
    nodes, inputs = [], []
    for at, kind in enumerate(kinds):
        name = "abcd"[at]
        inputs.append((name, kind, [None, 1]))
        if kind == "string":
            encode = {"ml": True, "keys_strings": list("xyz"), "values_floats": [0.0, 1.0, 2.0], "default_float": -1.0}
            nodes.append(("LabelEncoder", [name], [f"{name}1"], encode))
        else:
            nodes.append(("Cast", [name], [f"{name}1"], {"to": TensorProto.FLOAT}))
    names = [f"{each[0]}1" for each in inputs]
    nodes += [("Sum", names, ["s"], {}), ("Tanh", ["s"], ["y"], {})]
    return whole(nodes, inputs, [("y", "float", [None, 1])])
