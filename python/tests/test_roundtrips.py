"""One script call for each operation, as Redis counts them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.conformance.test_utils import (
    generate_checkpoint,
    generate_config,
    generate_metadata,
)
from servers import Redis

from switchyard import RedisSaver

CALLS = 20
# What a script calls is counted as well; these are never called by one.
FROM_CLIENTS = ("evalsha", "eval", "script|load", "multi", "exec", "hello", "client|setinfo", "ping", "select")


def counted(server: Redis) -> dict[str, int]:
    with server.client() as client:
        stats: Any = client.info("commandstats")
    return {name: stats.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in FROM_CLIENTS}


def arguments(number: int, channels: int = 20) -> Any:
    values = {f"channel-{name}": f"{number} " * 50 for name in range(channels)}
    versions: Any = {name: number + 1 for name in values}
    checkpoint = generate_checkpoint(channel_values=values, channel_versions=versions)
    return generate_config("t"), checkpoint, generate_metadata(step=number), versions


def operations(saver: RedisSaver) -> dict[str, tuple[Callable[[int], Any], Callable[[int], Any]]]:
    config = saver.put(*arguments(0))
    writes = [("a", 1), ("b", "x" * 1000), ("__interrupt__", 2)]
    return {
        "put": (lambda n: saver.put(*arguments(n)), lambda n: saver.aput(*arguments(n))),
        "put_writes": (
            lambda n: saver.put_writes(config, writes, f"task-{n % 3}", "path"),
            lambda n: saver.aput_writes(config, writes, f"task-{n % 3}", "path"),
        ),
        "get_tuple": (
            lambda n: saver.get_tuple(generate_config("t")),
            lambda n: saver.aget_tuple(generate_config("t")),
        ),
        "get_tuple by id": (lambda n: saver.get_tuple(config), lambda n: saver.aget_tuple(config)),
    }


@pytest.mark.parametrize("name", ["put", "put_writes", "get_tuple", "get_tuple by id"])
@pytest.mark.parametrize("options", [{}, {"ttl": 60.0, "refresh_on_read": True}], ids=["plain", "ttl"])
async def test_one_script_call_each(redis_server: Redis, namespace: str, name: str, options: Any) -> None:
    saver = RedisSaver.from_url(redis_server.url, namespace=namespace, **options)
    sync, native = operations(saver)[name]
    sync(0)
    await native(0)
    before = counted(redis_server)
    for number in range(CALLS):
        sync(number)
        await native(number)
    after = counted(redis_server)
    grown = {command: after[command] - before[command] for command in after if after[command] != before[command]}
    # The client that reads the figures connects, too.
    grown.pop("client|setinfo", None)
    grown.pop("hello", None)
    assert grown == {"evalsha": 2 * CALLS}


def test_scripts_are_sent_again_to_a_server_that_forgot_them(redis_server: Redis, saver: RedisSaver) -> None:
    saver.put(*arguments(0))
    with redis_server.client() as client:
        client.script_flush()
    saver.put(*arguments(1))
    with redis_server.client() as client:
        client.script_flush()
    assert len(list(saver.list(generate_config("t")))) == 2
