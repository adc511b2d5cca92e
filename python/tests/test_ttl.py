"""TTLs: of the saver, of the thread, and always of every key of a thread."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from langgraph.checkpoint.conformance.test_utils import (
    generate_checkpoint,
    generate_config,
    generate_metadata,
)
from servers import Cluster, Redis

from switchyard import RedisSaver

HOUR = 3600.0


def fill(saver: RedisSaver, thread: str = "t") -> None:
    """Every kind of key."""
    config = generate_config(thread)
    for number in range(3):
        checkpoint = generate_checkpoint(channel_values={"x": number}, channel_versions={"x": number + 1})
        config = saver.put(config, checkpoint, generate_metadata(run_id="r"), {"x": number + 1})
        saver.put_writes(config, [("x", 1)], "task")


def lives(server: Redis | Cluster, namespace: str) -> dict[str, int]:
    """Key → seconds to live, -1 for ever."""
    found: dict[str, int] = {}
    for node in server.nodes if isinstance(server, Cluster) else [server]:
        with node.client() as client:
            for key in client.scan_iter(f"lg:{namespace}:*"):
                found[key.decode().rsplit(":", 1)[1]] = client.ttl(key)
    return found


def is_about(found: dict[str, int], seconds: float) -> bool:
    return len(found) == 7 and all(seconds - 60 < life <= seconds for life in found.values())


def test_every_key_of_a_thread_has_the_ttl(url: str, request: Any, namespace: str) -> None:
    server = request.getfixturevalue("cluster" if "cluster" in url else "redis_server")
    fill(RedisSaver.from_url(url, namespace=namespace, ttl=timedelta(hours=1)))
    assert is_about(lives(server, namespace), HOUR)


def test_without_a_ttl_nothing_ends(redis_server: Redis, saver: RedisSaver, namespace: str) -> None:
    fill(saver)
    assert set(lives(redis_server, namespace).values()) == {-1}


def age(server: Redis, namespace: str, seconds: int = 100) -> None:
    """As if time had passed."""
    with server.client() as client:
        for key in client.scan_iter(f"lg:{namespace}:*"):
            client.expire(key, seconds)


def test_a_write_begins_it_again_for_every_key(redis_server: Redis, namespace: str) -> None:
    saver = RedisSaver.from_url(redis_server.url, namespace=namespace, ttl=HOUR)
    fill(saver)
    age(redis_server, namespace)
    newest = saver.get_tuple(generate_config("t"))
    assert newest is not None
    assert is_about(lives(redis_server, namespace), 100)
    saver.put_writes(newest.config, [("y", 1)], "other")
    assert is_about(lives(redis_server, namespace), HOUR)
    age(redis_server, namespace)
    saver.put(generate_config("t"), generate_checkpoint(), generate_metadata(), {})
    assert is_about(lives(redis_server, namespace), HOUR)


async def test_a_read_begins_it_again_if_wanted(redis_server: Redis, namespace: str) -> None:
    saver = RedisSaver.from_url(redis_server.url, namespace=namespace, ttl=HOUR, refresh_on_read=True)
    fill(saver)
    age(redis_server, namespace)
    saver.get_tuple(generate_config("t"))
    assert is_about(lives(redis_server, namespace), HOUR)
    age(redis_server, namespace)
    await saver.aget_tuple(generate_config("t"))
    assert is_about(lives(redis_server, namespace), HOUR)


async def test_a_thread_may_have_its_own(redis_server: Redis, namespace: str) -> None:
    saver = RedisSaver.from_url(redis_server.url, namespace=namespace, ttl=HOUR)
    assert saver.set_ttl("t", 60) is False
    fill(saver)
    assert saver.set_ttl("t", 24 * HOUR) is True
    assert is_about(lives(redis_server, namespace), 24 * HOUR)
    fill(saver)
    assert is_about(lives(redis_server, namespace), 24 * HOUR)
    await saver.aset_ttl("t", None)
    fill(saver)
    assert set(lives(redis_server, namespace).values()) == {-1}
    saver.reset_ttl("t")
    assert is_about(lives(redis_server, namespace), HOUR)


def test_savers_that_disagree_leave_no_key_behind(redis_server: Redis, namespace: str) -> None:
    short = RedisSaver.from_url(redis_server.url, namespace=namespace, ttl=HOUR)
    config = short.put(generate_config("t"), generate_checkpoint(), generate_metadata(), {})
    ever = RedisSaver.from_url(redis_server.url, namespace=namespace)
    ever.put_writes(config, [("x", 1)], "task")
    assert set(lives(redis_server, namespace).values()) == {-1}
    fill(short)
    assert is_about(lives(redis_server, namespace), HOUR)
    stats = short.stats()
    assert (stats["threads_with_ttl"], stats["threads_with_uneven_ttl"]) == (1, 0)


def test_a_copy_lives_as_long_as_the_original(redis_server: Redis, namespace: str) -> None:
    saver = RedisSaver.from_url(redis_server.url, namespace=namespace, ttl=HOUR)
    fill(saver)
    saver.copy_thread("t", "u")
    saver.delete_thread("t")
    assert is_about(lives(redis_server, namespace), HOUR)


def test_a_thread_ends_whole(redis_server: Redis, namespace: str) -> None:
    saver = RedisSaver.from_url(redis_server.url, namespace=namespace, ttl=0.001)
    fill(saver)
    with redis_server.client() as client:
        while client.exists(*[f"lg:{namespace}:thread:{{t}}:{name}" for name in ("meta", "data")]):
            pass
    assert lives(redis_server, namespace) == {}
    assert saver.get_tuple(generate_config("t")) is None


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), 1e12])
def test_a_ttl_that_is_none_is_refused(ttl: float) -> None:
    with pytest.raises(ValueError, match="is not one"):
        RedisSaver.from_url("redis://localhost", ttl=ttl)
