"""MiniLM's forward pass over the 8-bit weights of its file, written so that multiplications are done in integers.

The graph in the file turns all weights into floats at loading (0.2 s, 170 MB) and multiplies floats. This one keeps
them as they are: every row of activations, that is every token, is brought to 7 bits with a scale of its own,
multiplied exactly in integers, and scaled back. 7 bits, because two products of 7 by 8 bits fit the 16-bit sums of
processors without dot-product instructions, where 8 by 8 bits would be clipped. A row knows nothing of its neighbours,
hence a text has the same vector in every batch.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mnemic.models.onnx_file import Array, Node, Value, model, weights

MICROSOFT = "com.microsoft"  # onnxruntime's own fused operators
LAYERS = 6
HEADS = 12
WIDTH = 384
ZERO = 64  # the unsigned 7-bit number that stands for 0; activations go from 1 to 127
_EPSILON = 1e-12
_NAME = "inner.embeddings."


def graph(content: bytes) -> bytes:
    """The model to run, made of the weights in `content`. Inputs: `ids`, `mask` (int64, int32; texts x tokens);
    output: `states` (float32, texts x tokens x 384). Errors: ValueError when the weights are not MiniLM's."""
    try:
        return _Graph(weights(content)).build()
    except KeyError as error:
        raise ValueError(f"the file has no weights {error}") from error


class _Graph:
    def __init__(self, given: dict[str, Array]) -> None:
        self._given = given
        self._nodes: list[Node] = []
        self._constants: dict[str, Array] = {
            "one": np.array(1, np.float32),
            "step": np.array(1 / (ZERO - 1), np.float32),
            "tiny": np.array(1e-12, np.float32),  # a row of zeros has a scale too
            "centre": np.array(ZERO, np.float32),
            "zero": np.array(ZERO, np.uint8),
            "last": np.array([-1], np.int64),
            "first": np.array([0], np.int64),
        }
        # In the order of computation: query, key, value, attention output, feed-forward in and out of each layer.
        names = [name for name in given if name.startswith("val_") and name.endswith("_q")]
        self._dense = sorted((name[:-2] for name in names), key=lambda name: int(name[4:]))
        if len(self._dense) != 6 * LAYERS:
            raise ValueError(f"the file has {len(self._dense)} weight matrices, not {6 * LAYERS}")

    def build(self) -> bytes:
        state = self._embeddings()
        for layer in range(LAYERS):
            state = self._layer(layer, state)
        return model(
            self._nodes,
            self._constants,
            [Value("ids", np.int64, ("texts", "tokens")), Value("mask", np.int32, ("texts", "tokens"))],
            [Value(state, np.float32, ("texts", "tokens", WIDTH))],
            opsets={"": 18, MICROSOFT: 1},
        )

    def _embeddings(self) -> str:
        """Words plus positions; only the rows that are asked for become floats."""
        words = self._constant("words", self._given[_NAME + "word_embeddings.weight_q"])
        scales = self._constant("word_scales", self._given[_NAME + "word_embeddings.weight_scale"])
        places = self._constant("places", self._positions() + self._given[_NAME + "token_type_embeddings.weight"][0])
        rows = self._node("Cast", (self._node("Gather", (words, "ids"), "word8"),), "word", to=1)
        row = self._node("Mul", (rows, self._node("Gather", (scales, "ids"), "word_scale")), "word_scaled")
        length = self._node("Shape", ("ids",), "length", start=1, end=2)
        place = self._node("Slice", (places, "first", length), "place")
        norm = self._norm(_NAME + "LayerNorm", "embedded")
        summed = self._node("Add", (row, place), "placed")
        return self._node("LayerNormalization", (summed, *norm), "state0", axis=-1, epsilon=_EPSILON)

    def _layer(self, number: int, state: str) -> str:
        name = f"inner.encoder.layer.{number}."
        query, key, value, output, widen, narrow = self._dense[6 * number : 6 * number + 6]
        attention = name + "attention."
        biases = [self._given[f"{attention}self.{part}.bias"] for part in ("query", "key", "value")]
        joined = self._multiplied(state, [query, key, value], f"joined{number}")
        parts = tuple(f"{part}{number}" for part in "qkv")
        thirds = self._constant("thirds", np.full(3, WIDTH, np.int64))
        self._nodes.append(Node("Split", (joined, thirds), parts, attributes=(("axis", -1),)))
        bias = self._constant(f"attention_bias{number}", np.concatenate(biases))
        attended = self._own("MultiHeadAttention", (*parts, bias, "mask"), f"attended{number}", num_heads=HEADS)
        mixed = self._multiplied(attended, [output], f"mixed{number}")
        state = self._added(mixed, state, attention + "output", f"attention_state{number}")
        wide = self._multiplied(state, [widen], f"wide{number}")
        bias = self._constant(f"wide_bias{number}", self._given[name + "intermediate.dense.bias"])
        active = self._own("BiasGelu", (wide, bias), f"active{number}")
        narrowed = self._multiplied(active, [narrow], f"narrow{number}")
        return self._added(narrowed, state, name + "output", "states" if number == LAYERS - 1 else f"state{number + 1}")

    def _multiplied(self, rows: str, matrices: list[str], out: str) -> str:
        """`rows` times the matrices side by side, without bias."""
        given = self._given
        matrix = np.concatenate([given[name + "_q"] for name in matrices], axis=1)
        scales = np.concatenate([given[name + "_scale"].reshape(-1) for name in matrices])
        most = self._node("ReduceMax", (self._node("Abs", (rows,), out + "_abs"), "last"), out + "_most")
        scale = self._node("Add", (self._node("Mul", (most, "step"), out + "_part"), "tiny"), out + "_scale")
        whole = self._node("Round", (self._node("Div", (rows, scale), out + "_over"),), out + "_whole")
        seven = self._node("Cast", (self._node("Add", (whole, "centre"), out + "_up"),), out + "_seven", to=2)
        columns = (self._constant(out + "_matrix", matrix), "one", self._constant(out + "_columns", scales), "zero")
        product = self._own("MatMulIntegerToFloat", (seven, *columns), out + "_product")
        return self._node("Mul", (product, scale), out)

    def _added(self, rows: str, state: str, name: str, out: str) -> str:
        bias = self._constant(out + "_bias", self._given[name + ".dense.bias"])
        norm = self._norm(name + ".LayerNorm", out)
        return self._own("SkipLayerNormalization", (rows, state, *norm, bias), out, epsilon=_EPSILON)

    def _norm(self, name: str, out: str) -> tuple[str, str]:
        weight, bias = self._given[name + ".weight"], self._given[name + ".bias"]
        return self._constant(out + "_gain", weight), self._constant(out + "_shift", bias)

    def _positions(self) -> npt.NDArray[np.float32]:
        name = _NAME + "position_embeddings.weight"
        return self._given[name + "_q"].astype(np.float32) * self._given[name + "_scale"].astype(np.float32)

    def _constant(self, name: str, array: Array) -> str:
        self._constants[name] = array
        return name

    def _node(self, op: str, inputs: tuple[str, ...], out: str, **attributes: int | float) -> str:
        self._nodes.append(Node(op, inputs, (out,), "", tuple(attributes.items())))
        return out

    def _own(self, op: str, inputs: tuple[str, ...], out: str, **attributes: int | float) -> str:
        self._nodes.append(Node(op, inputs, (out,), MICROSOFT, tuple(attributes.items())))
        return out
