"""Async is native: no thread for each call, any loop, cancellation, forks; and sync calls wherever they come from."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from langgraph.checkpoint.conformance.test_utils import (
    generate_checkpoint,
    generate_config,
    generate_metadata,
)
from servers import Redis

from switchyard import RedisSaver, Unavailable


def arguments(thread: str, step: int = 0) -> Any:
    checkpoint = generate_checkpoint(channel_values={"x": step}, channel_versions={"x": step + 1})
    return generate_config(thread), checkpoint, generate_metadata(step=step), {"x": step + 1}


async def test_many_calls_need_no_threads(saver: RedisSaver) -> None:
    await saver.aput(*arguments("warm"))
    before = threading.active_count(), len(os.listdir("/proc/self/task"))
    results = await asyncio.gather(*[saver.aput(*arguments(f"t{number}")) for number in range(500)])
    assert len(results) == 500
    assert (threading.active_count(), len(os.listdir("/proc/self/task"))) == before
    found = await asyncio.gather(*[saver.aget_tuple(generate_config(f"t{number}")) for number in range(500)])
    assert all(each is not None for each in found)


def test_one_saver_in_several_loops(saver: RedisSaver) -> None:
    async def use(number: int) -> int:
        await saver.aput(*arguments(f"t{number}", number))
        found = await saver.aget_tuple(generate_config(f"t{number}"))
        assert found is not None
        return found.metadata["step"]

    assert [asyncio.run(use(number)) for number in range(3)] == [0, 1, 2]
    results: list[int] = []
    threads = [
        threading.Thread(target=lambda number=number: results.append(asyncio.run(use(number))))
        for number in range(8)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(results) == list(range(8))


async def test_a_cancelled_call_harms_nobody(saver: RedisSaver) -> None:
    tasks = [asyncio.create_task(saver.aput(*arguments(f"t{number}"))) for number in range(100)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert sum(isinstance(result, asyncio.CancelledError) for result in results) == 50
    for number in range(1, 100, 2):
        assert await saver.aget_tuple(generate_config(f"t{number}")) is not None
    # What was cancelled is whole, or not there.
    for number in range(0, 100, 2):
        found = await saver.aget_tuple(generate_config(f"t{number}"))
        assert found is None or found.checkpoint["channel_values"] == {"x": 0}


async def test_a_sync_call_inside_a_loop_does_not_hang(saver: RedisSaver) -> None:
    pending = asyncio.create_task(saver.aput(*arguments("async")))
    await asyncio.sleep(0)
    saver.put(*arguments("sync"))
    assert saver.get_tuple(generate_config("sync")) is not None
    await pending
    assert await asyncio.to_thread(saver.get_tuple, generate_config("async")) is not None


@pytest.fixture
def halting() -> Iterator[Redis]:
    """A server that can be made to hold its answers back."""
    server = Redis()
    yield server
    server.stop()


def test_other_threads_go_on_while_one_waits(halting: Redis) -> None:
    """The interpreter is not held meanwhile."""
    saver = RedisSaver.from_url(halting.url)
    saver.put(*arguments("t"))
    with halting.halted():
        waiting = threading.Thread(target=saver.get_tuple, args=(generate_config("t"),))
        waiting.start()
        assert sum(1 for _ in range(100_000)) == 100_000
        assert waiting.is_alive()
    waiting.join()


def in_child(saver: RedisSaver, connection: Any) -> None:
    saver.put(*arguments("child"))
    found = saver.get_tuple(generate_config("parent"))

    async def use() -> bool:
        await saver.aput(*arguments("child-async"))
        return await saver.aget_tuple(generate_config("parent")) is not None

    connection.send((found is not None, asyncio.run(use())))


def test_a_forked_child_makes_its_own_connections(saver: RedisSaver) -> None:
    saver.put(*arguments("parent"))
    asyncio.run(saver.aput(*arguments("parent-async")))
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe()
    children = [fork.Process(target=in_child, args=(saver, theirs)) for _ in range(3)]
    for child in children:
        child.start()
        saver.put(*arguments("meanwhile"))
    for child in children:
        assert ours.poll(60)
        assert ours.recv() == (True, True)
        child.join()
        assert child.exitcode == 0
    saver.put(*arguments("parent"))
    asyncio.run(saver.aput(*arguments("parent-async")))
    assert saver.get_tuple(generate_config("child-async")) is not None


def test_a_closed_saver_says_so(redis_server: Redis) -> None:
    with RedisSaver.from_url(redis_server.url) as saver:
        saver.setup()
    with pytest.raises(RuntimeError, match="closed"):
        saver.get_tuple(generate_config("t"))


async def test_nobody_there_is_a_clear_error() -> None:
    saver = RedisSaver.from_url("redis://:secret@127.0.0.1:1")
    with pytest.raises(Unavailable, match="redis at redis://127.0.0.1:1 cannot be reached") as sync:
        saver.get_tuple(generate_config("t"))
    with pytest.raises(Unavailable, match="cannot be reached") as native:
        await saver.aget_tuple(generate_config("t"))
    assert "secret" not in str(sync.value) + str(native.value) + repr(saver)


def test_an_answer_that_does_not_come_is_a_clear_error(halting: Redis) -> None:
    saver = RedisSaver.from_url(halting.url, timeout=0.3)
    saver.put(*arguments("t"))
    with halting.halted(), pytest.raises(Unavailable, match="no answer in time"):
        saver.get_tuple(generate_config("t"))
    patient = RedisSaver.from_url(halting.url)
    assert patient.get_tuple(generate_config("t")) is not None


async def settled(saver: RedisSaver, server: Redis) -> int:
    """Calls until the loop has a connection of its own; how many connections there are then."""
    with server.client() as client:
        for _ in range(1_000):
            await saver.aget_tuple(generate_config("t"))
            # One is the client's, one the runtime's.
            if (count := len(client.client_list())) >= 3:
                return count
    raise AssertionError("the loop gets no connection of its own")


async def test_a_loop_waits_on_a_connection_of_its_own(halting: Redis) -> None:
    saver = RedisSaver.from_url(halting.url)
    before = await settled(saver, halting)
    await asyncio.gather(*[saver.aput(*arguments(f"t{number}")) for number in range(200)])
    with halting.client() as client:
        assert len(client.client_list()) == before
        # Lost while it is idle, and lost under a call: the call is done all the same.
        client.client_kill_filter(_type="normal", skipme=True)
        assert await saver.aget_tuple(generate_config("t7")) is not None
    await settled(saver, halting)
    with halting.halted():
        pending = [asyncio.ensure_future(saver.aput(*arguments(f"u{number}"))) for number in range(20)]
        await asyncio.sleep(0)
    halting.kill()
    halting.start()
    await asyncio.gather(*pending)
    saver.close()


async def test_calls_that_begin_together_are_sent_together(halting: Redis) -> None:
    saver = RedisSaver.from_url(halting.url)
    await settled(saver, halting)
    with halting.client() as client:
        def reads() -> int:
            return int(client.info("stats")["total_reads_processed"])

        before = reads()
        await asyncio.gather(*[saver.aput(*arguments(f"t{number}")) for number in range(200)])
        assert reads() - before < 100


async def test_connections_go_with_their_saver(halting: Redis) -> None:
    saver = RedisSaver.from_url(halting.url)
    await settled(saver, halting)
    saver.get_tuple(generate_config("t"))
    pending = asyncio.ensure_future(saver.aput(*arguments("last")))
    await asyncio.sleep(0)
    saver.close()
    await pending
    with halting.client() as client:
        while len(client.client_list()) > 1:
            await asyncio.sleep(0)


async def test_a_loop_goes_on_while_an_answer_does_not_come(halting: Redis) -> None:
    saver = RedisSaver.from_url(halting.url, timeout=0.3)
    await settled(saver, halting)
    with halting.halted():
        pending = [asyncio.ensure_future(saver.aget_tuple(generate_config("t"))) for _ in range(3)]
        turns = 0
        while not all(each.done() for each in pending):
            turns += 1
            await asyncio.sleep(0)
        for each in pending:
            with pytest.raises(Unavailable, match="no answer in time"):
                await each
    assert turns > 100
    patient = RedisSaver.from_url(halting.url)
    assert await patient.aget_tuple(generate_config("t")) is None


async def test_values_larger_than_a_socket_holds(halting: Redis) -> None:
    saver = RedisSaver.from_url(halting.url)
    await settled(saver, halting)
    large = "x" * 5_000_000
    checkpoint = generate_checkpoint(channel_values={"x": large}, channel_versions={"x": 1})
    puts = [
        saver.aput(generate_config(f"large{number}"), checkpoint, generate_metadata(), {"x": 1})
        for number in range(3)
    ]
    for stored in await asyncio.gather(*puts, saver.aput(*arguments("small"))):
        assert await saver.aget_tuple(stored) is not None
    found = await saver.aget_tuple(generate_config("large2"))
    assert found is not None and found.checkpoint["channel_values"] == {"x": large}
