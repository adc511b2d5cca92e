"""Data that looks for the seams: separators, unicode, sizes, numbers, two writers at a time."""

from __future__ import annotations

import random
import threading
from typing import Any

import pytest
from langgraph.checkpoint.conformance.test_utils import (
    generate_checkpoint,
    generate_config,
    generate_metadata,
)
from servers import Redis

from switchyard import Corrupted, RedisSaver, UnknownFormat

NAMES = [
    "", " ", "%", "%25", "a:b", "a/b", "{", "}", "{}", "}{", "{a}", "a}b{c", "*", "?", "[a-z]", "\\", "'", '"',
    "a\x00b", "\n", "\r\n", "|", "#1", "ü", "🦀", "中文", "a" * 5000, "lg:x:thread:{t}:meta", "../..", "-1", "null",
]  # fmt: skip


def put(saver: RedisSaver, thread: str, ns: str = "", id: str | None = None, **values: Any) -> Any:
    versions: Any = {name: 1 for name in values}
    checkpoint = generate_checkpoint(checkpoint_id=id, channel_values=values, channel_versions=versions)
    return saver.put(generate_config(thread or "", checkpoint_ns=ns), checkpoint, generate_metadata(), versions)


def config_of(thread: str, ns: str = "") -> Any:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns}}


def put_as(saver: RedisSaver, thread: str, ns: str, value: Any) -> Any:
    checkpoint = generate_checkpoint(channel_values={"x": value}, channel_versions={"x": 1})
    return saver.put(config_of(thread, ns), checkpoint, generate_metadata(), {"x": 1})


def test_names_of_every_kind_stay_apart(any_saver: RedisSaver) -> None:
    for name in NAMES:
        put_as(any_saver, name, "", f"thread {name}")
        stored = put_as(any_saver, "namespaces", name, f"ns {name}")
        any_saver.put_writes(stored, [(name, f"write {name}")], name, name)
    for name in NAMES:
        found = any_saver.get_tuple(config_of(name))
        assert found is not None and found.checkpoint["channel_values"] == {"x": f"thread {name}"}
        found = any_saver.get_tuple(config_of("namespaces", name))
        assert found is not None and found.checkpoint["channel_values"] == {"x": f"ns {name}"}
        assert found.pending_writes == [(name, name, f"write {name}")]
        assert [each.config for each in any_saver.list(config_of("namespaces", name))] == [found.config]
    assert {each.config["configurable"]["thread_id"] for each in any_saver.list(None)} == {*NAMES, "namespaces"}
    for name in NAMES:
        any_saver.delete_thread(name)
        assert any_saver.get_tuple(config_of(name)) is None
    assert any_saver.stats()["threads"] == 1


def test_channels_and_tasks_of_every_kind(any_saver: RedisSaver) -> None:
    values = {name: f"value {name}" for name in NAMES}
    versions: Any = {name: name or "0" for name in NAMES}
    checkpoint = generate_checkpoint(channel_values=values, channel_versions=versions)
    config = any_saver.put(config_of("t"), checkpoint, generate_metadata(), versions)
    for name in NAMES:
        any_saver.put_writes(config, [("c", name)], f"task {name}", name)
    found = any_saver.get_tuple(config)
    assert found is not None and found.pending_writes is not None
    assert found.checkpoint["channel_values"] == values
    assert [value for _, _, value in found.pending_writes] == sorted(NAMES)
    any_saver.prune(["t"])
    again = any_saver.get_tuple(config)
    assert again is not None and again.checkpoint["channel_values"] == values


def test_half_a_surrogate_pair_is_refused(saver: RedisSaver) -> None:
    with pytest.raises(UnicodeEncodeError):
        saver.get_tuple(config_of("\ud800"))
    with pytest.raises(UnicodeEncodeError):
        put_as(saver, "\ud800", "", 1)


def test_large_values_come_back(any_saver: RedisSaver) -> None:
    large = random.Random(7).randbytes(10 * 1024 * 1024)
    config = put_as(any_saver, "t", "", large)
    any_saver.put_writes(config, [("x", large)], "task")
    found = any_saver.get_tuple(config)
    assert found is not None and found.pending_writes is not None
    assert found.checkpoint["channel_values"]["x"] == large
    assert found.pending_writes[0][2] == large


def test_many_channels_and_many_writes(saver: RedisSaver) -> None:
    values = {f"c{number}": number for number in range(20_000)}
    versions: Any = dict.fromkeys(values, 1)
    checkpoint = generate_checkpoint(channel_values=values, channel_versions=versions)
    config = saver.put(config_of("t"), checkpoint, generate_metadata(), versions)
    for number in range(3_000):
        saver.put_writes(config, [("c", number)], f"task {number}", f"{number:05}")
    saver.put_writes(config, [("c", number) for number in range(10_000)], "all", "z")
    found = saver.get_tuple(config)
    assert found is not None and found.pending_writes is not None
    assert found.checkpoint["channel_values"] == values
    assert [value for _, _, value in found.pending_writes] == [*range(3_000), *range(10_000)]
    emptied = generate_checkpoint(channel_versions={name: 2 for name in values})
    saver.put(config, emptied, generate_metadata(), {name: 2 for name in values})
    saver.prune(["t"])
    assert saver.stats()["values"] == 0


async def test_ten_thousand_checkpoints_in_a_thread(saver: RedisSaver) -> None:
    import asyncio

    ids = [f"{number:06}" for number in range(10_000)]
    for first in range(0, 10_000, 500):
        await asyncio.gather(
            *[
                saver.aput(
                    generate_config("t", checkpoint_id=ids[number - 1] if number else None),
                    generate_checkpoint(
                        checkpoint_id=ids[number],
                        channel_values={"x": number, "y": 0},
                        channel_versions={"x": number, "y": 0},
                    ),
                    generate_metadata(step=number),
                    {"x": number, "y": 0},
                )
                for number in range(first, first + 500)
            ]
        )
    newest = saver.get_tuple(generate_config("t"))
    assert newest is not None and newest.metadata["step"] in range(9_500, 10_000)
    some = generate_config("t", checkpoint_id=ids[5_000])
    assert len([found async for found in saver.alist(generate_config("t"), before=some, limit=7)]) == 7
    assert len(list(saver.list(generate_config("t"), filter={"step": 4_321}))) == 1
    saver.copy_thread("t", "u")
    saver.prune(["t"])
    assert (saver.stats()["checkpoints"], saver.stats()["values"]) == (10_001, 10_003)
    saver.delete_thread("u")
    assert saver.stats()["checkpoints"] == 1


def test_writers_of_one_thread_are_ordered(any_saver: RedisSaver) -> None:
    def write(writer: int) -> None:
        for number in range(25):
            checkpoint = generate_checkpoint(
                checkpoint_id=f"{writer}-{number}",
                channel_values={"x": [writer, number]},
                channel_versions={"x": f"{writer}-{number}"},
            )
            any_saver.put(config_of("t"), checkpoint, generate_metadata(), {"x": f"{writer}-{number}"})

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    found = [each.checkpoint for each in any_saver.list(config_of("t"))]
    assert len(found) == 200
    assert [each["id"] for each in found] == [each["id"] for each in [e.checkpoint for e in any_saver.list(config_of("t"))]]
    for writer in range(8):
        own = [each["channel_values"]["x"][1] for each in found if each["channel_values"]["x"][0] == writer]
        assert own == list(range(24, -1, -1))


def test_deleting_and_writing_at_once_leaves_nothing_half(any_saver: RedisSaver) -> None:
    stop = threading.Event()
    problems: list[Any] = []

    def delete() -> None:
        while not stop.is_set():
            any_saver.delete_thread("t")

    def read() -> None:
        while not stop.is_set():
            found = any_saver.get_tuple(config_of("t"))
            if found and set(found.checkpoint["channel_values"]) != set(found.checkpoint["channel_versions"]):
                problems.append(found)

    others = [threading.Thread(target=delete), threading.Thread(target=read)]
    for each in others:
        each.start()
    for number in range(300):
        values = {f"c{name}": number for name in range(20)}
        versions: Any = dict.fromkeys(values, number)
        checkpoint = generate_checkpoint(channel_values=values, channel_versions=versions)
        stored = any_saver.put(config_of("t"), checkpoint, generate_metadata(), versions)
        any_saver.put_writes(stored, [("c", 1)], "task")
    stop.set()
    for each in others:
        each.join()
    assert not problems
    any_saver.delete_thread("t")
    assert any_saver.stats()["threads"] == 0


def test_another_format_is_refused_and_not_touched(redis_server: Redis, saver: RedisSaver, namespace: str) -> None:
    config = put_as(saver, "t", "", 1)
    with redis_server.client() as client:
        meta = f"lg:{namespace}:thread:{{t}}:meta"
        client.hset(meta, "format", "2")
        for act in [
            lambda: put_as(saver, "t", "", 2),
            lambda: saver.put_writes(config, [("x", 1)], "task"),
            lambda: saver.get_tuple(config),
            lambda: saver.prune(["t"]),
            lambda: saver.copy_thread("t", "u"),
            lambda: saver.get_delta_channel_history(config=config, channels=["x"]),
            lambda: saver.set_ttl("t", 1),
            lambda: saver.delete_for_runs(["r"]),
        ]:
            with pytest.raises(UnknownFormat, match="thread `t` is stored in format 2"):
                act()
        client.hset(meta, "format", "1")
    found = saver.get_tuple(config_of("t"))
    assert found is not None and found.checkpoint["channel_values"] == {"x": 1}


def test_what_is_damaged_is_said_to_be(redis_server: Redis, saver: RedisSaver, namespace: str) -> None:
    put_as(saver, "t", "", 1)
    with redis_server.client() as client:
        blobs = f"lg:{namespace}:thread:{{t}}:blobs"
        client.hset(blobs, "%/x/#1", b"no separator")
    with pytest.raises(Corrupted, match="thread `t` is damaged"):
        saver.get_tuple(config_of("t"))
