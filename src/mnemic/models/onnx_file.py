"""The little of the ONNX format (Protocol Buffers) needed to read weights from a file and to write a graph around them.

Field numbers are those of onnx.proto3; https://onnx.ai/onnx/repo-docs/IR.html describes the messages.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]
DTYPES: Mapping[int, type[np.generic]] = {1: np.float32, 2: np.uint8, 3: np.int8, 6: np.int32, 7: np.int64}
CODES = {dtype: code for code, dtype in DTYPES.items()}


@dataclass(frozen=True, slots=True)
class Node:
    """`domain` is "" for the standard's own operators, else whose they are."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    domain: str = ""
    attributes: tuple[tuple[str, int | float], ...] = ()


@dataclass(frozen=True, slots=True)
class Value:
    """An input or output: `shape` holds numbers and the names of free dimensions."""

    name: str
    dtype: type[np.generic]
    shape: tuple[int | str, ...]


def weights(content: bytes) -> dict[str, Array]:
    """The initialisers of a model by name, as views into `content`. Errors: ValueError for what is no such file."""
    try:
        return {
            name: array
            for graph in _submessages(memoryview(content), 7)
            for tensor in _submessages(graph, 5)
            for name, array in _tensor(tensor)
        }
    except (IndexError, struct.error, KeyError, UnicodeDecodeError) as error:
        raise ValueError("not an ONNX file as expected") from error


def model(
    nodes: Sequence[Node],
    constants: Mapping[str, Array],
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    *,
    opsets: Mapping[str, int],
) -> bytes:
    """A model file of these parts."""
    graph: list[bytes | memoryview] = [_block(1, _node(node)) for node in nodes]
    graph.append(_block(2, b"graph"))
    for name, array in constants.items():
        graph += _weights(name, np.ascontiguousarray(array).reshape(array.shape))
    graph += [_block(11, _value(value)) for value in inputs]
    graph += [_block(12, _value(value)) for value in outputs]
    imports = [_block(8, _block(1, domain.encode()) + _number(2, version)) for domain, version in opsets.items()]
    head = _number(1, 8) + _encoded(7 << 3 | 2) + _encoded(sum(map(len, graph)))  # IR version 8
    return b"".join([head, *graph, *imports])  # the one copy of the weights


def _fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        value: int | memoryview
        match key & 7:
            case 0:
                value, place = _varint(message, place)
            case 1:
                value, place = message[place : place + 8], place + 8
            case 2:
                size, place = _varint(message, place)
                value, place = message[place : place + size], place + size
            case 5:
                value, place = message[place : place + 4], place + 4
            case _:
                raise ValueError("not an ONNX file")
        yield key >> 3, value


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[place]
        value |= (byte & 0x7F) << shift
        place += 1
        if byte < 0x80:
            return value, place
        shift += 7


def _submessages(message: memoryview, number: int) -> Iterator[memoryview]:
    for found, value in _fields(message):
        if found == number and isinstance(value, memoryview):
            yield value


def _tensor(message: memoryview) -> Iterator[tuple[str, Array]]:
    """Name and content; nothing for a type not in `DTYPES`."""
    shape: list[int] = []
    name, code, raw = "", 0, memoryview(b"")
    for number, value in _fields(message):
        match number, value:
            case 1, int():
                shape.append(value)
            case 1, memoryview():  # packed
                place = 0
                while place < len(value):
                    size, place = _varint(value, place)
                    shape.append(size)
            case 2, int():
                code = value
            case 8, memoryview():
                name = bytes(value).decode()
            case 9, memoryview():
                raw = value
    if code in DTYPES and raw:
        yield name, np.frombuffer(raw, dtype=DTYPES[code]).reshape(shape)


def _weights(name: str, array: Array) -> list[bytes | memoryview]:
    """The message in two pieces, the second being the array's own memory."""
    raw = array.reshape(-1).view(np.uint8).data
    head = b"".join(_number(1, size) for size in array.shape)
    head += _number(2, CODES[array.dtype.type]) + _block(8, name.encode()) + _encoded(9 << 3 | 2) + _encoded(len(raw))
    return [_encoded(5 << 3 | 2) + _encoded(len(head) + len(raw)) + head, raw]


def _node(node: Node) -> bytes:
    parts = [_block(1, name.encode()) for name in node.inputs]
    parts += [_block(2, name.encode()) for name in node.outputs]
    parts.append(_block(4, node.op.encode()))
    for name, value in node.attributes:
        number = _number(3, value) + _number(20, 2) if isinstance(value, int) else _float(2, value) + _number(20, 1)
        parts.append(_block(5, _block(1, name.encode()) + number))
    return b"".join(parts) + _block(7, node.domain.encode())


def _value(value: Value) -> bytes:
    shape = b"".join(
        _block(1, _number(1, size) if isinstance(size, int) else _block(2, size.encode())) for size in value.shape
    )
    tensor = _number(1, CODES[value.dtype]) + _block(2, shape)
    return _block(1, value.name.encode()) + _block(2, _block(1, tensor))


def _number(field: int, value: int) -> bytes:
    return _encoded(field << 3) + _encoded(value & (1 << 64) - 1)  # negative numbers are 64-bit two's complement


def _float(field: int, value: float) -> bytes:
    return _encoded(field << 3 | 5) + struct.pack("<f", value)


def _block(field: int, content: bytes) -> bytes:
    return _encoded(field << 3 | 2) + _encoded(len(content)) + content


def _encoded(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
