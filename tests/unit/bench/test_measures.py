from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest


@pytest.mark.parametrize(
    ("ours", "bar", "ambition", "met"),
    [(84, 79, 84, "ambition"), (80, 79, 84, "bar"), (78.9, 79, 84, "MISSED"), (7, 15, 6, "bar"), (16, 15, 6, "MISSED")],
)
def test_a_figure_is_held_against_bar_and_ambition_whichever_way_is_better(
    ours: float, bar: float, ambition: float, met: str
) -> None:
    from retrieval import reached

    assert reached(ours, bar, ambition) == met


def test_the_table_shows_a_missed_figure() -> None:
    from retrieval import table

    scores = {"recall@10": 0.5, "ndcg@10": 0.7}
    found = {"beam": {"levels": {"turn": {"answerable": {"n": 3, **scores}}}}}
    assert [line.split()[-3:] for line in table(found)[1:]] == [["50.0", "3", "MISSED"], ["70.0", "3", "ambition"]]


def test_synthetic_talk_begins_the_same_whatever_its_size() -> None:
    from synthetic import FakeEmbedder, Talk

    few, many = list(Talk().turns(3)), list(Talk().turns(200))
    assert few == many[:3]
    assert len({turn.session for turn in many}) == 9
    assert Talk().questions(3, 100) == Talk().questions(3, 100)
    vectors = FakeEmbedder().embed([many[0].text, many[0].text, many[40].text])
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert vectors[0] @ vectors[1] > 0.99 > vectors[0] @ vectors[2]


def test_percentiles_are_values_that_were_measured() -> None:
    from scale import spread

    assert spread([float(n) for n in range(1, 101)]) == {"p50": 50.5, "p95": 95.0}
    assert spread([3.0]) == {"p50": 3.0, "p95": 3.0}


def test_the_bare_writer_keeps_every_row(tmp_path: Path) -> None:
    import apsw

    from baselines import GroupWriter

    writer = GroupWriter(tmp_path / "bare.db")
    for future in [writer.submit(b"row") for _ in range(300)]:
        future.result(timeout=10)
    writer.close()
    db = apsw.Connection(str(tmp_path / "bare.db"))
    assert db.execute("SELECT count(*) FROM log").get == 300
    db.close()


def test_full_text_and_exact_search_rank_the_obvious_first(tmp_path: Path) -> None:
    from baselines import FullText, exact

    words = FullText(tmp_path / "fts.db", ["the"])
    words.add(["the cat sleeps", "the dogs bark", "a cat and a dog"])
    assert words.search("the dog", 2)[0] in (2, 3)
    assert words.search("the", 2) == []
    words.close()
    matrix = np.eye(3, dtype=np.float32)
    assert exact(matrix, np.array([0.1, 0.9, 0.5], np.float32), 2).tolist() == [1, 2]
