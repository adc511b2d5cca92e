"""What the suite does not ask: versions, order of writes, delta channels, filters, any scheme of ids."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver, writes_sort_key
from langgraph.checkpoint.conformance.test_utils import (
    generate_checkpoint,
    generate_config,
    generate_metadata,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from switchyard import RedisSaver


def put(saver: BaseCheckpointSaver[Any], thread: str, id: str, parent: str | None = None, **more: Any) -> Any:
    values, versions = more.pop("values", {}), more.pop("versions", {})
    checkpoint = generate_checkpoint(checkpoint_id=id, channel_values=values, channel_versions=versions)
    config = generate_config(thread, checkpoint_ns=more.pop("ns", ""), checkpoint_id=parent)
    new = more.pop("new", versions)
    return saver.put(config, checkpoint, generate_metadata(**more), new)


def ids(saver: BaseCheckpointSaver[Any], thread: str, **more: Any) -> list[str]:
    return [found.checkpoint["id"] for found in saver.list(generate_config(thread), **more)]


@pytest.mark.parametrize("version", [1, 1.5, 2.0, "1", "00000001.3a", "a/b:{c}"])
def test_versions_of_every_type_come_back(saver: RedisSaver, version: Any) -> None:
    put(saver, "t", "1", values={"x": "old"}, versions={"x": version})
    put(saver, "t", "2", "1", values={"x": "old"}, versions={"x": version}, new={})
    found = saver.get_tuple(generate_config("t"))
    assert found is not None
    assert found.checkpoint["channel_values"] == {"x": "old"}
    assert found.checkpoint["channel_versions"] == {"x": version}
    assert type(found.checkpoint["channel_versions"]["x"]) is type(version)


def test_a_number_and_its_text_are_two_versions(saver: RedisSaver) -> None:
    put(saver, "t", "1", values={"x": "number"}, versions={"x": 1})
    put(saver, "t", "2", values={"x": "text"}, versions={"x": "1"})
    first = saver.get_tuple(generate_config("t", checkpoint_id="1"))
    assert first is not None and first.checkpoint["channel_values"] == {"x": "number"}
    # Equal numbers are one version to Python, and here.
    put(saver, "t", "3", values={"x": "number"}, versions={"x": 1.0}, new={})
    third = saver.get_tuple(generate_config("t"))
    assert third is not None and third.checkpoint["channel_values"] == {"x": "number"}


def test_next_versions_grow_and_never_meet(saver: RedisSaver) -> None:
    current: Any = None
    for _ in range(12):
        following = saver.get_next_version(current, None)
        assert current is None or following > current
        assert following != saver.get_next_version(current, None)
        current = following
    assert saver.get_next_version(7, None).startswith("0" * 31 + "8.")
    assert saver.get_next_version(7.0, None).startswith("0" * 31 + "8.")


def test_a_channel_that_lost_its_value_has_none(saver: RedisSaver) -> None:
    put(saver, "t", "1", values={"x": 1, "y": 1}, versions={"x": 1, "y": 1})
    put(saver, "t", "2", "1", values={"y": 1}, versions={"x": 2, "y": 1}, new={"x": 2})
    found = saver.get_tuple(generate_config("t"))
    assert found is not None and found.checkpoint["channel_values"] == {"y": 1}


def test_none_is_a_value(saver: RedisSaver) -> None:
    put(saver, "t", "1", values={"x": None}, versions={"x": 1})
    found = saver.get_tuple(generate_config("t"))
    assert found is not None and found.checkpoint["channel_values"] == {"x": None}


@pytest.mark.parametrize("make", [lambda saver: saver, lambda saver: InMemorySaver()], ids=["redis", "memory"])
def test_writes_are_in_the_order_of_their_sort_key(saver: RedisSaver, make: Any) -> None:
    """The same on the saver that LangGraph ships."""
    saver = make(saver)
    config = put(saver, "t", "1")
    calls = [
        ("t9", "~__pregel_pull, a", [("x", 1), ("y", 2)]),
        ("t1", "~__pregel_pull, b", [("x", 3), ("__interrupt__", "first")]),
        ("t1", "~__pregel_pull, b", [("x", "ignored"), ("__interrupt__", "second"), ("z", 4)]),
        ("t5", "", [("__resume__", "r"), ("x", 5), ("__error__", "e"), ("__scheduled__", "s")]),
    ]
    for task, path, writes in calls:
        saver.put_writes(config, writes, task, path)
    found = saver.get_tuple(config)
    assert found is not None and found.pending_writes is not None
    assert found.pending_writes == [
        ("t5", "__resume__", "r"),
        ("t5", "__scheduled__", "s"),
        ("t5", "__error__", "e"),
        ("t5", "x", 5),
        ("t9", "x", 1),
        ("t9", "y", 2),
        ("t1", "__interrupt__", "second"),
        ("t1", "x", 3),
        ("t1", "z", 4),
    ]
    assert writes_sort_key("a", "t", 1) == ("a", "t", 1)


def test_ids_need_not_be_ordered(any_saver: RedisSaver) -> None:
    order = ["m", "z", "a", "10", "9", "ü", "Z", "", "b/1", "{b}"]
    order = [id for id in order if id]
    for id in order:
        put(any_saver, "t", id)
    assert ids(any_saver, "t") == order[::-1]
    newest = any_saver.get_tuple(generate_config("t"))
    assert newest is not None and newest.checkpoint["id"] == order[-1]
    assert ids(any_saver, "t", before=generate_config("t", checkpoint_id="9")) == ["10", "a", "z", "m"]
    assert ids(any_saver, "t", before=generate_config("t", checkpoint_id="9"), limit=2) == ["10", "a"]
    assert ids(any_saver, "t", limit=0) == []


def test_before_a_checkpoint_that_is_gone_compares_ids(saver: RedisSaver) -> None:
    for id in ["1", "2", "3", "4"]:
        put(saver, "t", id)
    assert ids(saver, "t", before=generate_config("t", checkpoint_id="2x")) == ["2", "1"]


def test_storing_again_keeps_the_place(saver: RedisSaver) -> None:
    put(saver, "t", "1", values={"x": 1}, versions={"x": 1})
    put(saver, "t", "2", "1")
    put(saver, "t", "1", values={"x": 2}, versions={"x": 1}, step=9)
    assert ids(saver, "t") == ["2", "1"]
    again = saver.get_tuple(generate_config("t", checkpoint_id="1"))
    assert again is not None and again.metadata["step"] == 9
    assert again.checkpoint["channel_values"] == {"x": 2}


def test_pages_follow_each_other(saver: RedisSaver) -> None:
    for number in range(120):
        put(saver, "t", str(number), ns="a" if number % 2 else "b", step=number)
    everything = [str(number) for number in reversed(range(120))]
    config: Any = {"configurable": {"thread_id": "t"}}
    assert [found.checkpoint["id"] for found in saver.list(config)] == everything
    before: Any = {"configurable": {"thread_id": "t", "checkpoint_id": "60"}}
    found = [each.checkpoint["id"] for each in saver.list(config, before=before)]
    assert found == everything[60:]
    only: Any = {"configurable": {"thread_id": "t", "checkpoint_id": "60"}}
    assert [each.checkpoint["id"] for each in saver.list(only)] == ["60"]
    assert [each.metadata["step"] for each in saver.list(config, filter={"step": 3})] == [3]


def test_filters_are_about_any_metadata(saver: RedisSaver) -> None:
    put(saver, "t", "1", score=1.5, tags=["a"], nested={"k": [1, None]})
    put(saver, "t", "2", score=None)
    assert ids(saver, "t", filter={"nested": {"k": [1, None]}}) == ["1"]
    assert ids(saver, "t", filter={"tags": ["a"], "score": 1.5}) == ["1"]
    assert ids(saver, "t", filter={"score": None}) == ["2"]
    assert ids(saver, "t", filter={"tags": ["b"]}) == []


def test_all_threads_are_listed(any_saver: RedisSaver) -> None:
    for thread in ["a", "b", "c"]:
        put(any_saver, thread, f"{thread}1")
        put(any_saver, thread, f"{thread}2", f"{thread}1")
    found = [each.checkpoint["id"] for each in any_saver.list(None)]
    assert sorted(found) == ["a1", "a2", "b1", "b2", "c1", "c2"]
    assert all(found.index(f"{thread}2") < found.index(f"{thread}1") for thread in "abc")
    assert len(list(any_saver.list(None, limit=3))) == 3


def chain(saver: BaseCheckpointSaver[Any], thread: str) -> Any:
    """A delta channel `log`: a snapshot at 2, then writes at 2, 3 and 4; `other` is stored at every step."""
    counters = {"counters_since_delta_snapshot": {"log": (1, 1)}}
    parent = None
    for number in range(1, 6):
        id = str(number)
        values: dict[str, Any] = {"other": number}
        if number == 2:
            values["log"] = _DeltaSnapshot(["one"])
        more = {} if number == 2 else counters
        parent = put(
            saver, thread, id, parent and parent["configurable"]["checkpoint_id"],
            values=values, versions={"log": number, "other": number, "gone": 1}, **more,
        )
        saver.put_writes(parent, [("log", f"{id}b")], "task-b", "path-b")
        saver.put_writes(parent, [("log", f"{id}a"), ("other", "x")], "task-c", "path-a")
    return parent


@pytest.mark.parametrize("make", [lambda saver: saver, lambda saver: InMemorySaver()], ids=["redis", "memory"])
def test_the_history_of_a_delta_channel(any_saver: RedisSaver, make: Any) -> None:
    saver = make(any_saver)
    config = chain(saver, "t")
    history = saver.get_delta_channel_history(config=config, channels=["log", "other", "gone", "never"])
    assert history["log"]["seed"] == _DeltaSnapshot(["one"])
    assert [value for _, _, value in history["log"]["writes"]] == ["2a", "2b", "3a", "3b", "4a", "4b"]
    assert history["other"] == {"seed": 4, "writes": [("task-c", "other", "x")]}
    assert history["gone"] == {"writes": []}
    assert history["never"] == {"writes": []}
    assert saver.get_delta_channel_history(config=config, channels=[]) == {}
    missing = generate_config("nowhere", checkpoint_id="1")
    assert saver.get_delta_channel_history(config=missing, channels=["log"]) == {"log": {"writes": []}}


async def test_a_long_history_comes_in_pages(saver: RedisSaver) -> None:
    parent = None
    for number in range(450):
        put(saver, "t", f"{number:04}", parent, versions={"log": number})
        parent = f"{number:04}"
        saver.put_writes(generate_config("t", checkpoint_id=parent), [("log", number)], "task")
    config = generate_config("t")
    history = saver.get_delta_channel_history(config=config, channels=["log"])
    assert [value for _, _, value in history["log"]["writes"]] == list(range(449))
    assert await saver.aget_delta_channel_history(config=config, channels=["log"]) == history


def test_a_chain_that_is_a_loop_ends(saver: RedisSaver) -> None:
    put(saver, "t", "1", "2", versions={"log": 1})
    put(saver, "t", "2", "1", versions={"log": 1})
    history = saver.get_delta_channel_history(config=generate_config("t"), channels=["log"])
    assert history == {"log": {"writes": []}}
    saver.prune(["t"])


def test_pruning_keeps_what_delta_channels_are_made_of(any_saver: RedisSaver) -> None:
    config = chain(any_saver, "t")
    before = any_saver.get_delta_channel_history(config=config, channels=["log"])
    any_saver.prune(["t"], strategy="keep_latest")
    assert ids(any_saver, "t") == ["5", "4", "3", "2"]
    assert any_saver.get_delta_channel_history(config=config, channels=["log"]) == before
    oldest = any_saver.get_tuple(generate_config("t", checkpoint_id="2"))
    assert oldest is not None and oldest.parent_config is None


def test_pruning_takes_values_and_writes_along(saver: RedisSaver, redis_server: Any) -> None:
    parent = None
    for number in range(10):
        put(saver, "t", str(number), parent, values={"x": number, "kept": 1}, versions={"x": number, "kept": 1})
        parent = str(number)
        saver.put_writes(generate_config("t", checkpoint_id=parent), [("x", 1)], "task")
    assert saver.stats()["values"] == 11
    saver.prune(["t"])
    stats = saver.stats()
    assert (stats["checkpoints"], stats["values"], stats["tasks"]) == (1, 2, 1)
    found = saver.get_tuple(generate_config("t"))
    assert found is not None and found.parent_config is None
    assert found.checkpoint["channel_values"] == {"x": 9, "kept": 1}
    for strategy in ["delete", "delete_all"]:
        put(saver, "t", "again")
        saver.prune(["t"], strategy=strategy)
        assert saver.stats()["threads"] == 0
    with pytest.raises(ValueError, match="`other` is not a strategy"):
        saver.prune(["t"], strategy="other")
    with pytest.raises(TypeError):
        saver.prune("t")


def test_runs_are_deleted_from_all_threads(any_saver: RedisSaver) -> None:
    for thread in ["a", "b", "c"]:
        put(any_saver, thread, "1", run_id="r1", values={"x": 1}, versions={"x": 1})
        put(any_saver, thread, "2", "1", run_id="r2", values={"x": 2}, versions={"x": 2})
    put(any_saver, "only", "1", run_id="r1")
    any_saver.delete_for_runs(["r1", "unknown"])
    assert ids(any_saver, "only") == []
    for thread in ["a", "b", "c"]:
        assert ids(any_saver, thread) == ["2"]
    assert any_saver.stats()["values"] == 3
    assert any_saver.stats()["threads"] == 3


def test_a_copy_goes_its_own_way(any_saver: RedisSaver) -> None:
    config = chain(any_saver, "source")
    any_saver.copy_thread("source", "target")
    found = any_saver.get_tuple(generate_config("target"))
    original = any_saver.get_tuple(config)
    assert found is not None and original is not None
    assert found.checkpoint == original.checkpoint and found.pending_writes == original.pending_writes
    put(any_saver, "target", "6", "5")
    assert ids(any_saver, "source") == ["5", "4", "3", "2", "1"]
    assert ids(any_saver, "target") == ["6", "5", "4", "3", "2", "1"]
    assert [found.config["configurable"]["thread_id"] for found in any_saver.list(generate_config("target"))] == [
        "target"
    ] * 6
    with pytest.raises(ValueError, match="`target` is there already"):
        any_saver.copy_thread("source", "target")
    assert ids(any_saver, "target") == ["6", "5", "4", "3", "2", "1"]


def test_an_allowlist_makes_a_copy_that_reads_with_its_own_serializer(saver: RedisSaver) -> None:
    saver.serde = JsonPlusSerializer(allowed_msgpack_modules=None)
    clone = saver.with_allowlist([("decimal", "Decimal")])
    assert isinstance(clone, RedisSaver) and clone is not saver and clone.serde is not saver.serde
    put(clone, "t", "1", values={"x": {1, 2}}, versions={"x": 1})
    assert ids(saver, "t") == ids(clone, "t") == ["1"]

    class Shouting(JsonPlusSerializer):
        def loads_typed(self, data: tuple[str, bytes]) -> Any:
            value = super().loads_typed(data)
            return "loud" if value == "quiet" else value

    put(saver, "t", "2", values={"x": "quiet"}, versions={"x": 2})
    late = copy.copy(saver)
    late.serde = Shouting()
    found = late.get_tuple(generate_config("t"))
    assert found is not None and found.checkpoint["channel_values"] == {"x": "loud"}


def test_nothing_is_pickled(saver: RedisSaver, redis_server: Any, namespace: str) -> None:
    put(saver, "t", "1", values={"b": b"\x80\x04raw", "a": bytearray(b"x")}, versions={"b": 1, "a": 1})
    with redis_server.client() as client:
        stored = client.hgetall(f"lg:{namespace}:thread:{{t}}:blobs")
    assert stored == {b"%/b/#1": b"bytes:\x80\x04raw", b"%/a/#1": b"bytearray:x"}

    class Unknown:
        pass

    with pytest.raises(TypeError):
        put(saver, "t", "2", values={"x": Unknown()}, versions={"x": 1})
    assert ids(saver, "t") == ["1"]


def test_a_config_without_a_thread_is_refused(saver: RedisSaver) -> None:
    with pytest.raises(ValueError, match=r"no configurable\.thread_id"):
        saver.get_tuple({"configurable": {}})
    assert saver.get_tuple({"configurable": {"thread_id": 7}}) is None
    put(saver, 7, "1")  # type: ignore[arg-type]
    found = saver.get_tuple({"configurable": {"thread_id": 7}})
    assert found is not None and found.config["configurable"]["thread_id"] == 7
