"""Tests that share what is slow to make are done by one worker, if pytest and its workers agree on how that is said."""

import os

import pytest

pytestmark = pytest.mark.xdist_group("together")


@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="There is one process, which has all tests.")
def test_the_worker_is_told_what_belongs_together(request: pytest.FixtureRequest) -> None:
    """The group is part of the name by which tests are dealt out; otherwise fixtures are made once per worker."""
    assert request.node.nodeid.endswith("::test_the_worker_is_told_what_belongs_together@together")
