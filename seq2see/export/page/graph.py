"""ONNX graphs as plain records that the page's own JavaScript computes: nodes as JSON, weights as bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy import ndarray

from seq2see.errors import UserError, imported

FORWARD = {"direction": ("forward",), "layout": (0,), "input_forget": (0,)}
ALLOWED: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "GRU": FORWARD,
    "LSTM": FORWARD,
    "RNN": FORWARD,
    "Cast": {"to": (1, 6, 7, 9)},
    "Conv": {"group": (1,)},
    "GatherND": {"batch_dims": (0,)},
    "Mod": {"fmod": (0,)},
    "Pad": {"mode": ("constant",)},
    "ScatterElements": {"reduction": ("none", "add")},
    "ScatterND": {"reduction": ("none", "add")},
}
"""What js/operators.js takes of the attributes of some operators."""
FEW = 64
"""Numbers of a tensor that is never stored as float16: scalars may be out of its range, and it would save nothing."""
LARGEST = float(np.finfo(np.float16).max)
ABSENT = -1


@dataclass
class Weights:
    """The constants of all graphs as bytes, little-endian; equal ones are stored once. half: as float16."""

    half: bool
    content: bytearray = field(default_factory=bytearray)
    _known: dict[tuple[str, tuple[int, ...], bytes], int] = field(default_factory=dict)

    def add(self, array: ndarray) -> list[Any]:
        """[type, shape, first byte] of a constant."""
        kind, stored = self._stored(array)
        content = stored.tobytes()
        key = kind, array.shape, content
        if key not in self._known:
            self.content += bytes(-len(self.content) % 4)
            self._known[key] = len(self.content)
            self.content += content
        return [kind, list(array.shape), self._known[key]]

    def _stored(self, array: ndarray) -> tuple[str, ndarray]:
        if array.dtype == np.bool_:
            return "bool", array.astype("u1")
        if np.issubdtype(array.dtype, np.integer):
            limits = np.iinfo(np.int32)
            return "int32", array.clip(limits.min, limits.max).astype("<i4")
        if array.dtype != np.float32:
            raise UserError(
                f"page: the model computes with {array.dtype}; allowed: float32, whole numbers, truth values"
            )
        if self.half and fits_half(array):
            return "float16", array.astype("<f2")
        return "float32", array.astype("<f4")


def fits_half(array: ndarray) -> bool:
    """Whether a tensor is stored as float16."""
    return array.size >= FEW and bool((np.abs(array) <= LARGEST).all())


def round_weights(model: Any) -> None:
    """Round the constants of an ONNX model as the page stores them, in place."""
    onnx = imported("onnx", extra="onnx")
    for constant in model.graph.initializer:
        array = onnx.numpy_helper.to_array(constant)
        if array.dtype == np.float32 and fits_half(array):
            name, rounded = constant.name, array.astype(np.float16).astype(np.float32)
            constant.CopyFrom(onnx.numpy_helper.from_array(rounded, name))


def graph_record(model: Any, weights: Weights) -> dict[str, Any]:
    """An ONNX model as {inputs, outputs, nodes, constants}; values have numbers instead of names.

    inputs, outputs: {name: number}; nodes: [operator, inputs, outputs, attributes]; constants: [number, type, shape,
    first byte of the weights].
    """
    onnx = imported("onnx", extra="onnx")
    numbers: dict[str, int] = {"": ABSENT}

    def number(name: str) -> int:
        return numbers.setdefault(name, len(numbers) - 1)

    graph = model.graph
    constants = [[number(each.name), *weights.add(onnx.numpy_helper.to_array(each))] for each in graph.initializer]
    nodes = []
    for node in graph.node:
        attributes = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
        if node.op_type == "Constant":
            constants.append([number(node.output[0]), *weights.add(_constant(attributes))])
            continue
        plain = {name: _plain(value, weights) for name, value in attributes.items()}
        check_node(node.op_type, node.domain, plain)
        nodes.append([node.op_type, [*map(number, node.input)], [*map(number, node.output)], plain])
    return {
        "inputs": {each.name: number(each.name) for each in graph.input},
        "outputs": {each.name: number(each.name) for each in graph.output},
        "nodes": nodes,
        "constants": constants,
    }


@cache
def operators() -> frozenset[str]:
    """What js/operators.js can compute: the keys of its table."""
    source = (Path(__file__).parent / "js" / "operators.js").read_text("utf-8")
    return frozenset(re.findall(r"^  (\w+):", source[source.index("export const OPERATORS") :], re.MULTILINE))


def check_node(operator: str, domain: str, attributes: Mapping[str, Any]) -> None:
    """Refuse what js/operators.js cannot compute."""
    if domain not in ("", "ai.onnx") or operator not in operators():
        name = f"{domain}.{operator}" if domain else operator
        raise UserError(f"page: the model needs the operator {name}; allowed: {', '.join(sorted(operators()))}")
    if operator == "Conv" and len(attributes.get("kernel_shape", [0])) != 1:
        raise UserError("page: the model needs convolutions over grids; allowed: along one axis")
    for name, values in ALLOWED.get(operator, {}).items():
        if name in attributes and attributes[name] not in values:
            raise UserError(
                f"page: the model needs {operator} with {name} {attributes[name]}, which the page does not support"
            )


def _constant(attributes: Mapping[str, Any]) -> ndarray:
    onnx = imported("onnx", extra="onnx")
    ((name, value),) = attributes.items()
    if name == "value":
        array: ndarray = onnx.numpy_helper.to_array(value)
        return array
    return np.asarray(value, dtype=np.float32 if "float" in name else np.int64)


def _plain(value: Any, weights: Weights) -> Any:
    """An attribute as JSON; tensors as constants."""
    onnx = imported("onnx", extra="onnx")
    if isinstance(value, onnx.TensorProto):
        return weights.add(onnx.numpy_helper.to_array(value))
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list):
        return [_plain(each, weights) for each in value]
    return value
