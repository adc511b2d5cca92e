"""LangGraph's words made into operations, and what came of them made into LangGraph's words.

Nothing here waits: the sync and the async methods of the saver share it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from switchyard._core import Op

# What `Core` returns for a checkpoint: thread, ns, id, parent, checkpoint, metadata, values, writes.
Stored = tuple[str, str, str, "str | None", Any, Any, list[Any], list[Any]]


def thread_of(config: RunnableConfig) -> str:
    try:
        thread = config["configurable"]["thread_id"]
    except (KeyError, TypeError):
        raise ValueError("the config has no configurable.thread_id, which checkpoints are kept by") from None
    return thread if isinstance(thread, str) else str(thread)


def put_op(
    serde: SerializerProtocol,
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
    ttl_ms: int,
) -> Op:
    configurable = config["configurable"]
    dumps = serde.dumps_typed
    head: dict[str, Any] = dict(checkpoint)
    values = head.pop("channel_values")
    new_values = []
    emptied = {}
    for channel, version in new_versions.items():
        if channel in values:
            new_values.append((channel, version, dumps(values[channel])))
        else:
            emptied[channel] = version
    stored_metadata = get_checkpoint_metadata(config, metadata)
    run = stored_metadata.get("run_id")
    return Op.put(
        thread_of(config),
        configurable.get("checkpoint_ns", ""),
        checkpoint["id"],
        configurable.get("checkpoint_id"),
        None if run is None else str(run),
        list(metadata.get("counters_since_delta_snapshot") or ()),
        checkpoint["channel_versions"],
        dumps(head),
        dumps(stored_metadata),
        new_values,
        emptied,
        ttl_ms,
    )


def put_writes_op(
    serde: SerializerProtocol,
    config: RunnableConfig,
    writes: Sequence[tuple[str, Any]],
    task_id: str,
    task_path: str,
    ttl_ms: int,
) -> Op:
    configurable = config["configurable"]
    dumps = serde.dumps_typed
    return Op.put_writes(
        thread_of(config),
        configurable.get("checkpoint_ns", ""),
        configurable["checkpoint_id"],
        task_id,
        task_path,
        [(channel, dumps(value)) for channel, value in writes],
        ttl_ms,
    )


def get_op(config: RunnableConfig, refresh_ms: int | None) -> Op:
    configurable = config["configurable"]
    return Op.get(
        thread_of(config),
        configurable.get("checkpoint_ns", ""),
        configurable.get("checkpoint_id") or None,
        refresh_ms,
    )


def delta_op(config: RunnableConfig, channels: Sequence[str]) -> Op:
    configurable = config["configurable"]
    return Op.delta_history(
        thread_of(config),
        configurable.get("checkpoint_ns", ""),
        configurable.get("checkpoint_id") or None,
        list(channels),
    )


def config_of(thread_id: Any, ns: str, checkpoint_id: str) -> RunnableConfig:
    return {
        "configurable": {"thread_id": thread_id, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}
    }


def tuple_of(serde: SerializerProtocol, stored: Stored, thread_id: Any) -> CheckpointTuple:
    """`thread_id` is the caller's own, which need not be a string."""
    _, ns, checkpoint_id, parent, checkpoint, metadata, values, writes = stored
    loads = serde.loads_typed
    whole: Checkpoint = loads(checkpoint)
    whole["channel_values"] = {channel: loads(value) for channel, value in values}
    return CheckpointTuple(
        config_of(thread_id, ns, checkpoint_id),
        whole,
        loads(metadata),
        None if parent is None else config_of(thread_id, ns, parent),
        [(task, channel, loads(value)) for task, channel, value in writes],
    )


def is_match(serde: SerializerProtocol, stored: Stored, wanted: Mapping[str, Any]) -> bool:
    metadata = serde.loads_typed(stored[5])
    return all(metadata.get(key) == value for key, value in wanted.items())


def histories_of(
    serde: SerializerProtocol, channels: Sequence[str], found: list[Any]
) -> dict[str, DeltaChannelHistory]:
    loads = serde.loads_typed
    histories: dict[str, DeltaChannelHistory] = {}
    for channel, (writes, seed) in zip(channels, found, strict=True):
        history: DeltaChannelHistory = {
            "writes": [(task, name, loads(value)) for task, name, value in writes]
        }
        if seed is not None:
            history["seed"] = loads(seed)
        histories[channel] = history
    return histories
