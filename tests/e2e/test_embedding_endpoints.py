"""Embedding and re-ranking endpoints over real HTTP on loopback: what they answer, and every way they fail."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from mnemic.domain.types import Space
from mnemic.errors import ModelError, ModelMisbehaved, ModelMissing, ModelUnavailable
from mnemic.models import gemini, http, ollama, openai
from mnemic.models.cross_encoder import EndpointReranker
from mnemic.models.http import Timing
from mnemic.models.remote import Options, RemoteEmbedder
from mnemic.models.secrets import Secret

KEY = "sk-very-secret"
REFUSED = (ModelUnavailable, ModelMisbehaved, ModelMissing)


@dataclass
class Answer:
    body: object = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class QuietServer(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up early is part of the tests."""


class Server:
    """Answers what the test says: a list of answers in turn (the last one stays), or a function of the request."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.answers: list[Answer] | Callable[[Request], Answer] = []
        self.hang = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["Content-Length"]))
                request = Request(self.path, {k.lower(): v for k, v in self.headers.items()}, json.loads(content))
                server.requests.append(request)
                answer = server.next(request)
                if answer.status == 0:  # never answers
                    server.hang.wait(10)
                    self.close_connection = True
                    return
                body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.http = QuietServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def next(self, request: Request) -> Answer:
        if callable(self.answers):
            return self.answers(request)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def stop(self) -> None:
        self.hang.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


class FakeTime:
    """Sleeping moves the clock and takes no time; chance is always the most."""

    def __init__(self) -> None:
        self.time = 0.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds

    def timing(self) -> Timing:
        return Timing(now=lambda: self.time, sleep=self.sleep, chance=lambda: 1.0)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.stop()


@pytest.fixture
def clock() -> FakeTime:
    return FakeTime()


@pytest.fixture
def embedder(server: Server, clock: FakeTime) -> Iterator[RemoteEmbedder]:
    """An OpenAI-compatible one of three numbers."""
    made = openai.embedder(options(server, clock, model="tiny", dimension=3, asked=False))
    yield made
    made.close()


def options(server: Server, clock: FakeTime, **changes: Any) -> Options:
    return Options(
        **{"base_url": server.url, "key": Secret(KEY, {}), "timeout_s": 5.0, "timing": clock.timing()} | changes
    )


def openai_answer(*vectors: list[Any]) -> Answer:
    return Answer({"data": [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]})


def lengths(request: Request) -> Answer:
    """Each text's vector is (its length, 1, 0), in reverse order of the texts."""
    data = [{"index": index, "embedding": [len(text), 1, 0]} for index, text in enumerate(request.body["input"])]
    return Answer({"object": "list", "data": data[::-1]})


# ---- what they are asked and answer


def test_openai_is_asked_as_documented_and_its_indices_are_followed(server: Server, embedder: RemoteEmbedder) -> None:
    server.answers = lengths
    vectors = embedder.embed(["a", "bbb"])
    assert vectors == pytest.approx(np.array([[1, 1, 0], [3, 1, 0]]) / np.sqrt([[2], [10]]))
    assert vectors.dtype == np.float32
    (request,) = server.requests
    assert request.path == "/embeddings"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {"model": "tiny", "input": ["a", "bbb"], "encoding_format": "float"}


def test_without_a_key_no_header_is_sent(server: Server, clock: FakeTime) -> None:
    server.answers = lengths
    made = openai.embedder(options(server, clock, key=Secret("", {}), model="tiny"))
    made.embed(["a"])
    made.close()
    assert "authorization" not in server.requests[0].headers


def test_dimensions_is_sent_only_when_it_is_set_and_not_the_models_own(server: Server, clock: FakeTime) -> None:
    server.answers = lambda request: openai_answer([1.0] * request.body.get("dimensions", 1536))
    for dimension, sent in ((0, None), (1536, None), (512, 512)):
        made = openai.embedder(options(server, clock, dimension=dimension, asked=dimension > 0))
        assert made.embed(["a"]).shape == (1, dimension or 1536)
        assert server.requests[-1].body.get("dimensions") == sent
        made.close()


def test_an_unknown_models_dimension_is_found_at_the_first_answer_and_kept(server: Server, clock: FakeTime) -> None:
    server.answers = [openai_answer([1.0, 0.0]), openai_answer([1.0, 0.0, 0.0])]
    made = openai.embedder(options(server, clock, model="mine"))
    assert made.space == Space("openai", "mine", 0, "l2")
    assert server.requests == []  # opening calls nobody
    made.embed(["a"])
    assert made.space == Space("openai", "mine", 2, "l2")
    with pytest.raises(ModelMisbehaved, match="answered 3 numbers a text where 2 are stored"):
        made.embed(["b"])
    made.close()


def test_ollama_gets_the_models_prefixes_and_must_not_cut(server: Server, clock: FakeTime) -> None:
    server.answers = lambda request: Answer({"embeddings": [[2.0] + [0.0] * 767 for _ in request.body["input"]]})
    made = ollama.embedder(options(server, clock, key=Secret("", {})))
    assert made.space == Space("ollama", "nomic-embed-text", 768, "prefix-l2")
    assert made.embed(["a", "b"])[:, 0].tolist() == [1, 1]
    made.embed(["c"], query=True)
    made.close()
    assert [request.path for request in server.requests] == ["/api/embed"] * 2
    assert server.requests[0].body == {
        "model": "nomic-embed-text",
        "input": ["search_document: a", "search_document: b"],
        "truncate": False,
    }
    assert server.requests[1].body["input"] == ["search_query: c"]


def test_gemini_gets_the_key_in_its_header_and_a_task_type(server: Server, clock: FakeTime) -> None:
    server.answers = lambda request: Answer({"embeddings": [{"values": [0.3, 0.4]} for _ in request.body["requests"]]})
    made = gemini.embedder(options(server, clock, dimension=2, asked=True))
    assert made.embed(["a"]).tolist() == [pytest.approx([0.6, 0.8])]  # brought to length 1
    made.embed(["b"], query=True)
    made.close()
    first, second = server.requests
    assert first.path == "/models/gemini-embedding-001:batchEmbedContents"
    assert first.headers["x-goog-api-key"] == KEY
    assert "authorization" not in first.headers
    assert first.body["requests"] == [
        {
            "model": "models/gemini-embedding-001",
            "taskType": "RETRIEVAL_DOCUMENT",
            "outputDimensionality": 2,
            "content": {"parts": [{"text": "a"}]},
        }
    ]
    assert second.body["requests"][0]["taskType"] == "RETRIEVAL_QUERY"


def test_many_texts_go_in_batches_and_come_back_in_order(server: Server, clock: FakeTime) -> None:
    server.answers = lengths
    made = openai.embedder(options(server, clock, model="tiny", batch=3))
    vectors = made.embed(["x" * size for size in range(1, 8)])
    made.close()
    assert (vectors[:, 0] / vectors[:, 1]).round().tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert [len(request.body["input"]) for request in server.requests] == [3, 3, 1]


def test_a_request_stays_under_the_vendors_tokens(server: Server, clock: FakeTime) -> None:
    server.answers = lengths
    made = openai.embedder(options(server, clock, model="tiny", batch=5000))
    made.embed(["7" * 100_000] * 5)
    made.close()
    assert [len(request.body["input"]) for request in server.requests] == [2, 2, 1]


def test_a_blank_text_does_not_spoil_its_batch(server: Server, embedder: RemoteEmbedder) -> None:
    server.answers = lengths
    embedder.embed(["", " \n", "a\x00\ud83d"])
    assert server.requests[0].body["input"] == [".", ".", "a ?"]


def test_no_text_asks_nobody(server: Server, embedder: RemoteEmbedder) -> None:
    assert embedder.embed([]).shape == (0, 3)
    assert server.requests == []


# ---- no answer: tried again


def test_429_waits_as_long_as_it_is_told_and_then_succeeds(
    server: Server, embedder: RemoteEmbedder, clock: FakeTime
) -> None:
    server.answers = [Answer({}, 429, {"Retry-After": "7"}), openai_answer([1.0, 0.0, 0.0])]
    assert embedder.embed(["a"]).tolist() == [[1, 0, 0]]
    assert clock.slept == [7.0]


def test_a_date_to_wait_for_is_understood() -> None:
    at = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert http._retry_after(at) == pytest.approx(30, abs=2)
    assert http._retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert [http._retry_after(header) for header in ("", "soon", "nan", "-5")] == [None, None, None, 0]


def test_asked_to_wait_too_long_it_gives_up_at_once(server: Server, embedder: RemoteEmbedder, clock: FakeTime) -> None:
    server.answers = [Answer({}, 429, {"Retry-After": "3600"})]
    with pytest.raises(ModelUnavailable, match="status 429; tried once"):
        embedder.embed(["a"])
    assert clock.slept == []


def test_500s_are_tried_five_times_with_growing_waits(
    server: Server, embedder: RemoteEmbedder, clock: FakeTime
) -> None:
    server.answers = [Answer({"error": {"message": "out of cheese"}}, 500)]
    with pytest.raises(ModelUnavailable, match=r"openai at [\d.:]+: status 500 \(out of cheese\); tried 5 times"):
        embedder.embed(["a"])
    assert len(server.requests) == 5
    assert clock.slept == [0.5, 1.0, 2.0, 4.0]


def test_a_question_is_tried_twice_only_because_somebody_waits(server: Server, embedder: RemoteEmbedder) -> None:
    server.answers = [Answer({}, 503)]
    with pytest.raises(ModelUnavailable, match="tried 2 times"):
        embedder.embed(["a"], query=True)
    assert len(server.requests) == 2


def test_a_hang_ends_with_the_time_out(server: Server, clock: FakeTime) -> None:
    server.answers = [Answer(status=0)]
    made = openai.embedder(options(server, clock, model="tiny", timeout_s=0.1))
    with pytest.raises(ModelUnavailable, match=r"no answer within 0\.1 s; tried 2 times"):
        made.embed(["a"], query=True)
    made.close()


def test_an_answer_that_drips_ends_with_the_time_out_too(server: Server) -> None:
    times = iter(range(0, 10_000, 10))
    server.answers = [openai_answer([1.0, 0.0, 0.0])]
    timing = Timing(now=lambda: float(next(times)), sleep=lambda seconds: None)
    made = openai.embedder(Options(model="tiny", base_url=server.url, timeout_s=5.0, timing=timing))
    with pytest.raises(ModelUnavailable, match="no whole answer within 5 s"):
        made.embed(["a"], query=True)
    made.close()


def test_a_refused_connection_is_no_answer(clock: FakeTime) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    made = openai.embedder(Options(model="tiny", base_url=url, timing=clock.timing()))
    with pytest.raises(ModelUnavailable, match=r"cannot be reached .*; tried 5 times"):
        made.embed(["a"])
    made.close()


def test_a_used_up_quota_is_not_tried_again(server: Server, embedder: RemoteEmbedder) -> None:
    server.answers = [Answer({"error": {"code": "insufficient_quota", "message": "You exceeded your quota"}}, 429)]
    with pytest.raises(ModelUnavailable, match="quota is used up"):
        embedder.embed(["a"])
    assert len(server.requests) == 1


def test_the_breaker_opens_fails_fast_and_closes_by_itself(
    server: Server, embedder: RemoteEmbedder, clock: FakeTime
) -> None:
    server.answers = [Answer({}, 503)]
    for _ in range(3):
        assert embedder.breaker == "closed"
        with pytest.raises(ModelUnavailable, match="status 503"):
            embedder.embed(["a"])
    assert embedder.breaker == "open"
    asked = len(server.requests)
    with pytest.raises(ModelUnavailable, match="did not answer 3 times; next try in 30 s"):
        embedder.embed(["a"])
    assert len(server.requests) == asked
    clock.time += 30
    assert embedder.breaker == "half-open"
    server.answers = [openai_answer([1.0, 0.0, 0.0])]
    embedder.embed(["a"])
    assert embedder.breaker == "closed"


# ---- refused: never tried again, and the setting is named


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (401, r"refused the key, status 401 \(no\); check embeddings\.api_key"),
        (403, r"refused the key, status 403 \(no\); check embeddings\.api_key"),
        (404, r"status 404 \(no\); check embeddings\.base_url and embeddings\.model"),
        (400, r"refused the request, status 400 \(no\); check embeddings\.model"),
        (413, r"status 413 \(no\); lower embeddings\.batch"),
        (302, r"sends elsewhere, status 302; set embeddings\.base_url"),
    ],
)
def test_a_refusal_names_the_setting_to_change(
    server: Server, embedder: RemoteEmbedder, status: int, says: str
) -> None:
    server.answers = [Answer({"error": "no"}, status, {"Location": server.url + "/elsewhere"})]
    with pytest.raises(ModelError, match=says) as caught:
        embedder.embed(["a"])
    assert not isinstance(caught.value, REFUSED)
    assert [request.path for request in server.requests] == ["/embeddings"]  # once, and no redirect was followed
    assert embedder.breaker == "closed"


def test_a_key_gemini_calls_invalid_with_400_is_a_refused_key(server: Server, clock: FakeTime) -> None:
    server.answers = [
        Answer({"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}}, 400)
    ]
    made = gemini.embedder(options(server, clock))
    with pytest.raises(ModelError, match=r"refused the key.*check embeddings\.api_key"):
        made.embed(["a"])
    made.close()


def test_the_key_is_in_no_error_even_when_the_endpoint_repeats_it(server: Server, embedder: RemoteEmbedder) -> None:
    for status in (401, 500):
        server.answers = [Answer({"error": {"message": f"Incorrect API key provided: {KEY}"}}, status)]
        with pytest.raises(ModelError) as caught:
            embedder.embed(["a"])
        error: BaseException | None = caught.value
        while error is not None:
            assert KEY not in f"{error!r} {error}"
            error = error.__cause__ or error.__context__
    assert KEY not in repr(options(server, FakeTime()))


def test_a_key_that_was_replaced_is_read_again_after_a_refusal(server: Server, clock: FakeTime) -> None:
    environment = {"KEY": "old"}
    server.answers = lambda request: (
        lengths(request) if request.headers["authorization"] == "Bearer new" else Answer({}, 401)
    )
    made = openai.embedder(options(server, clock, model="tiny", key=Secret("env:KEY", environment)))
    with pytest.raises(ModelError, match="refused the key"):
        made.embed(["a"])
    environment["KEY"] = "new"
    assert made.embed(["a"]).shape == (1, 3)
    made.close()


def test_a_key_that_cannot_be_read_asks_nobody(server: Server, clock: FakeTime) -> None:
    made = openai.embedder(options(server, clock, key=Secret("env:NOT_THERE", {})))
    with pytest.raises(ModelMissing, match="NOT_THERE is not set"):
        made.embed(["a"])
    assert server.requests == []
    assert made.breaker == "closed"


# ---- an unusable answer


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Answer(b"<html>Sign in to the hotel</html>"), r"answered a web page; check embeddings\.base_url"),
        (Answer(b""), "something that is not JSON"),
        (Answer(b'{"data": [{"embed'), "something that is not JSON"),
        (Answer({"result": []}), "JSON of another shape"),
        (Answer([1, 2]), "JSON of another shape"),
        (Answer({"data": [{"embedding": None}, {"embedding": None}]}), "something else than vectors"),
        (Answer({"data": [{"index": 0, "embedding": [1, 0, 0]}] * 2}), "JSON of another shape"),
        (openai_answer([1, 0, 0]), "answered 1 vectors for 2 texts"),
        (openai_answer([1, 0, 0], [1, 0]), "different lengths"),
        (openai_answer([1, 0], [1, 0]), "answered 2 numbers a text where 3 are stored"),
        (openai_answer([1, 0, 0], [1, float("nan"), 0]), "NaN or infinite"),
        (openai_answer([1, 0, 0], [0, 0, 0]), "vector of zeros"),
        (openai_answer(["1", "0", "0"], ["1", "0", "0"]), "something else than vectors"),
        (Answer({"data": [{"embedding": "AACAPwAAAAA="}] * 2}), "something else than vectors"),
        (Answer(b"not gzip", headers={"Content-Encoding": "gzip"}), "cannot be unpacked"),
    ],
)
def test_an_unusable_answer_is_refused_at_once(
    server: Server, embedder: RemoteEmbedder, answer: Answer, says: str
) -> None:
    server.answers = [answer]
    with pytest.raises(ModelMisbehaved, match=says):
        embedder.embed(["a", "b"])
    assert len(server.requests) == 1


def test_an_endless_answer_is_cut(server: Server, embedder: RemoteEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MOST_BYTES", 1 << 20)
    server.answers = [Answer(b" " * (2 << 20))]
    with pytest.raises(ModelMisbehaved, match="more than 1 MB"):
        embedder.embed(["a"])


# ---- re-ranking


@pytest.fixture
def ranker(server: Server, clock: FakeTime) -> Iterator[EndpointReranker]:
    made = EndpointReranker(f"{server.url}/v1/rerank", "bge", Secret(KEY, {}), timing=clock.timing())
    yield made
    made.close()


def results(*pairs: tuple[object, object]) -> Answer:
    return Answer({"results": [{"index": index, "relevance_score": score} for index, score in pairs]})


def test_rerank_scores_come_back_in_the_order_of_the_texts(server: Server, ranker: EndpointReranker) -> None:
    server.answers = [results((2, 0.9), (0, 0.5), (1, 0.1))]
    assert ranker.rerank("q", ["a", "b", "c"]) == [0.5, 0.1, 0.9]
    (request,) = server.requests
    assert request.path == "/v1/rerank"
    assert request.body == {"model": "bge", "query": "q", "documents": ["a", "b", "c"], "top_n": 3}
    assert request.headers["authorization"] == f"Bearer {KEY}"


def test_logits_are_brought_between_0_and_1(server: Server, ranker: EndpointReranker) -> None:
    server.answers = [results((0, 0.0), (1, -30.0), (2, 2.0))]
    assert ranker.rerank("q", ["a", "b", "c"]) == pytest.approx([0.5, 0.0, 0.8807970779], abs=1e-9)


@pytest.mark.parametrize(
    "answer",
    [
        results((0, 0.5)),
        results((0, 0.5), (0, 0.4)),
        results((0, 0.5), (2, 0.4)),
        results((0, 0.5), (-1, 0.4)),
        results((0, 0.5), (1, float("nan"))),
        results((0, 0.5), (1, "0.4")),
        results((0, 0.5), (True, 0.4)),
        results((0, 0.5), (None, 0.4)),
        Answer({"results": None}),
        Answer({"data": []}),
    ],
)
def test_an_answer_that_is_no_permutation_of_finite_scores_is_refused(
    server: Server, ranker: EndpointReranker, answer: Answer
) -> None:
    server.answers = [answer]
    with pytest.raises(ModelMisbehaved):
        ranker.rerank("q", ["a", "b"])


def test_no_text_is_ranked_without_asking(server: Server, ranker: EndpointReranker) -> None:
    assert ranker.rerank("q", []) == []
    assert server.requests == []
