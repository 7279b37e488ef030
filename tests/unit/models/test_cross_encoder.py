"""A cross-encoder from a file: a tiny one, built here, whose score is the number of tokens of the text."""

import json
from collections.abc import Callable
from math import exp
from pathlib import Path

import numpy as np
import pytest

from mnemic.config import VectorConfig
from mnemic.errors import ModelMisbehaved, ModelMissing
from mnemic.models.cross_encoder import EndpointReranker, OnnxReranker, reranker

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("tokenizers")

TOKENIZER = Path(__file__).parents[3] / "src" / "mnemic" / "data" / "minilm" / "tokenizer.json"
Build = Callable[..., OnnxReranker]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    def built(shape: str = "n1", factor: float = 1.0, first_input: str = "input_ids") -> OnnxReranker:
        (tmp_path / "tokenizer.json").write_bytes(TOKENIZER.read_bytes())
        onnx.save(graph(shape, factor, first_input), tmp_path / "model.onnx")
        return OnnxReranker(tmp_path / "model.onnx", threads=1)

    return built


def graph(shape: str, factor: float, first_input: str) -> "onnx.ModelProto":
    """logit = factor * (tokens of the second sentence - 4), in the shape asked for."""
    helper, types = onnx.helper, onnx.TensorProto
    node, tensor = helper.make_node, onnx.numpy_helper.from_array
    constants = [
        tensor(np.array([1], np.int64), "axis"),
        tensor(np.array(-4, np.float32), "minus4"),
        tensor(np.array(factor, np.float32), "factor"),
    ]
    nodes = [
        node("Cast", ["token_type_ids"], ["second"], to=types.FLOAT),
        node("ReduceSum", ["second", "axis"], ["tokens"], keepdims=0 if shape == "n" else 1),
        node("Add", ["tokens", "minus4"], ["centred"]),
    ]
    if shape == "n2":
        nodes += [node("Mul", ["centred", "factor"], ["yes"]), node("Sub", ["yes", "yes"], ["no"])]
        nodes += [node("Concat", ["no", "yes"], ["logits"], axis=1)]
    elif shape == "nt":
        nodes += [node("Mul", ["second", "factor"], ["logits"])]
    else:
        nodes += [node("Mul", ["centred", "factor"], ["logits"])]
    inputs = [
        helper.make_tensor_value_info(name, types.INT64, ["n", "t"])
        for name in (first_input, "attention_mask", "token_type_ids")
    ]
    outputs = [helper.make_tensor_value_info("logits", types.FLOAT, None)]
    made = helper.make_graph(nodes, "tiny", inputs, outputs, constants)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def sigmoid(logit: float) -> float:
    return 1 / (1 + exp(-logit))


@pytest.mark.parametrize("shape", ["n", "n1", "n2"])
def test_logits_of_every_usual_shape_become_scores_in_the_order_of_the_texts(build: Build, shape: str) -> None:
    texts = ["one two three four five", "one", "one two three"]  # each with its end mark: 6, 2, 4 tokens
    scores = build(shape).rerank("what", texts)
    assert list(scores) == pytest.approx([sigmoid(2), sigmoid(-2), 0.5])


def test_many_texts_keep_their_order_over_batches(build: Build) -> None:
    texts = ["word " * (number % 7) for number in range(50)]
    assert list(build().rerank("q", texts)) == pytest.approx([sigmoid(number % 7 + 1 - 4) for number in range(50)])


def test_large_logits_do_not_overflow(build: Build) -> None:
    assert list(build(factor=1e6).rerank("q", ["one two three four five", "one"])) == [1.0, 0.0]


def test_long_texts_and_questions_are_cut_to_the_window(build: Build) -> None:
    (score,) = build(factor=1e-3).rerank("why " * 900, ["word " * 900])
    assert score == pytest.approx(sigmoid(1e-3 * (255 - 4)), abs=2e-3)


def test_no_text_gives_no_score_and_loads_nothing(build: Build) -> None:
    assert build("nt").rerank("q", []) == []


def test_another_shape_is_refused(build: Build) -> None:
    with pytest.raises(ModelMisbehaved, match=r"answered 2x\d+ for 2 texts; a cross-encoder answers 2x1 or 2x2"):
        build("nt").rerank("q", ["one two three", "a b c"])


def test_scores_that_are_no_numbers_are_refused(build: Build) -> None:
    with pytest.raises(ModelMisbehaved, match="NaN or infinite"):
        build(factor=float("nan")).rerank("q", ["x"])


def test_a_model_of_another_kind_is_refused(build: Build) -> None:
    with pytest.raises(ModelMisbehaved, match="wants the inputs pixel_values"):
        build(first_input="pixel_values").rerank("q", ["x"])


def test_a_file_that_is_not_there_or_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match=r"model\.onnx is not there"):
        OnnxReranker(tmp_path / "model.onnx")
    (tmp_path / "model.onnx").write_bytes(b"not a model")
    with pytest.raises(ModelMissing, match=r"tokenizer\.json is not there"):
        OnnxReranker(tmp_path / "model.onnx")
    (tmp_path / "tokenizer.json").write_text(json.dumps({}))
    with pytest.raises(ModelMissing, match=r"model\.onnx or its tokenizer\.json cannot be loaded"):
        OnnxReranker(tmp_path / "model.onnx").rerank("q", ["x"])


def test_the_setting_decides(build: Build) -> None:
    file = build()._path
    made = reranker(VectorConfig(rerank_model=str(file)), environment={})
    assert isinstance(made, OnnxReranker)
    made = reranker(VectorConfig(rerank_model="http://127.0.0.1:9/v1/rerank#bge"), environment={})
    assert isinstance(made, EndpointReranker)
    assert made.name == "bge"
    with pytest.raises(ModelMissing, match="rerank_model is empty"):
        reranker(VectorConfig(), environment={})
