"""How often a client may ask, and by which names a server may be called."""

import pytest

from heedful.errors import InputError
from heedful.web.limits import Buckets, Hosts, is_local


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_is_full_at_first_and_refills_at_its_rate() -> None:
    clock = Clock()
    buckets = Buckets(rate=2.0, clients=10, clock=clock)
    assert [buckets.take("a") for _ in range(5)] == [0, 0, 0, 0, 0.5]  # four at once, then one in half a second
    clock.now = 0.25
    assert buckets.take("a") == 0.25
    clock.now = 0.5
    assert [buckets.take("a"), buckets.take("a")] == [0, 0.5]


def test_clients_have_buckets_of_their_own_and_few_are_remembered() -> None:
    buckets = Buckets(rate=0.5, clients=2, clock=Clock())
    assert [buckets.take(name) for name in ("a", "a", "b", "b")] == [0, 2, 0, 2]
    assert buckets.take("c") == 0
    assert list(buckets.held) == ["b", "c"]


def test_a_rate_must_be_above_nothing() -> None:
    with pytest.raises(InputError, match="above 0; got 0"):
        Buckets(rate=0.0, clients=1)


@pytest.mark.parametrize("name", ["localhost", "LOCALHOST:80", "127.0.0.1:8000", "[::1]:8000", "[::1]", "localhost."])
def test_this_computer_goes_by_its_names(name: str) -> None:
    assert Hosts.of("127.0.0.1").allow(name)


@pytest.mark.parametrize(
    "name",
    [
        *("", "evil.example", "evil.example:8000", "localhost.evil.example", "192.168.0.7", "a[::1]", "[::1]a", ":80"),
        *("localhost:80@evil.example", "localhost:x", "localhost:80:80", "[localhost", "evil.example@localhost"),
    ],
)
def test_other_names_are_refused(name: str) -> None:
    assert not Hosts.of("127.0.0.1").allow(name)


def test_a_server_that_is_open_goes_by_addresses_and_by_names_that_are_given() -> None:
    hosts = Hosts.of("0.0.0.0", ("Lab.example",))
    assert [hosts.allow(name) for name in ("10.0.0.7:80", "lab.example", "localhost", "evil.example")] == [
        True,
        True,
        True,
        False,
    ]
    assert "0.0.0.0" not in hosts.names


def test_what_is_local() -> None:
    assert [is_local(host) for host in ("localhost", "127.0.0.1", "127.3.4.5", "::1", "0.0.0.0", "lab.example")] == [
        True,
        True,
        True,
        True,
        False,
        False,
    ]
