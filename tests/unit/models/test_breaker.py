"""The circuit breaker, with a clock of our own."""

import pytest

from mnemic.errors import ConfigError, ModelUnavailable
from mnemic.models.http import Breaker, Target
from mnemic.models.secrets import Secret


class FakeClock:
    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


def opened(clock: FakeClock) -> Breaker:
    breaker = Breaker(failures=3, rest_s=30, now=clock)
    for _ in range(3):
        breaker.admit("m")
        breaker.failed()
    return breaker


def test_it_opens_after_failures_in_a_row_only() -> None:
    breaker = Breaker(failures=3, now=FakeClock())
    breaker.failed()
    breaker.failed()
    breaker.answered()
    breaker.failed()
    breaker.failed()
    assert breaker.state == "closed"
    breaker.failed()
    assert breaker.state == "open"


def test_while_open_it_fails_at_once_and_says_for_how_long() -> None:
    clock = FakeClock()
    breaker = opened(clock)
    clock.time = 10
    with pytest.raises(ModelUnavailable, match=r"m did not answer 3 times; next try in 20 s"):
        breaker.admit("m")


def test_after_the_rest_one_call_tries_and_an_answer_closes_it() -> None:
    clock = FakeClock()
    breaker = opened(clock)
    clock.time = 30
    assert breaker.state == "half-open"
    breaker.admit("m")
    with pytest.raises(ModelUnavailable):
        breaker.admit("m")  # a second one does not join in
    breaker.answered()
    assert breaker.state == "closed"
    breaker.admit("m")


def test_a_failed_try_opens_it_for_another_rest() -> None:
    clock = FakeClock()
    breaker = opened(clock)
    clock.time = 30
    breaker.admit("m")
    breaker.failed()
    clock.time = 59
    assert breaker.state == "open"
    clock.time = 60
    assert breaker.state == "half-open"


def test_an_interrupted_try_lets_the_next_one_try() -> None:
    clock = FakeClock()
    breaker = opened(clock)
    clock.time = 30
    breaker.admit("m")
    breaker.abandoned()
    breaker.admit("m")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "api.openai.com",
        "ftp://host",
        "http://",
        "http://[::1",
        "http://host:99999",
        "https://me:pw@host",
        "https://h?key=1",
    ],
)
def test_a_url_that_cannot_be_one_or_holds_a_key_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(ConfigError, match=r"embeddings\.base_url") as caught:
        Target("m", url, Secret("", {}))
    assert "pw" not in str(caught.value)
