from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from servers import Cluster, Redis  # noqa: E402

from switchyard import RedisSaver  # noqa: E402


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Redis]:
    server = Redis("--appendonly", "no")
    yield server
    server.stop()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    yield cluster
    cluster.stop()


@pytest.fixture(params=["server", "cluster"])
def url(request: pytest.FixtureRequest) -> str:
    """Both kinds of Redis."""
    name = "redis_server" if request.param == "server" else "cluster"
    return request.getfixturevalue(name).url


@pytest.fixture
def namespace() -> str:
    """Of this test alone."""
    return uuid4().hex


@pytest.fixture
def saver(redis_server: Redis, namespace: str) -> Iterator[RedisSaver]:
    with RedisSaver.from_url(redis_server.url, namespace=namespace) as saver:
        yield saver


@pytest.fixture
def any_saver(url: str, namespace: str) -> Iterator[RedisSaver]:
    with RedisSaver.from_url(url, namespace=namespace) as saver:
        yield saver
