"""`RedisSaver`: LangGraph's checkpointer in Redis."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from switchyard import _calls, _listing
from switchyard._core import Core, Op
from switchyard._loops import bridge_into


class RedisSaver(BaseCheckpointSaver[str]):
    """Keeps checkpoints in Redis 7 or newer, or in a Redis Cluster. No modules are needed.

    Every method has an async twin that waits without a thread. `put`, `put_writes` and `get_tuple` are one round trip
    and one atomic script each. One saver may be used by any number of threads, event loops and forked processes.

        from switchyard import RedisSaver

        with RedisSaver.from_url("redis://localhost:6379") as saver:
            graph = builder.compile(checkpointer=saver)
            graph.invoke(inputs, {"configurable": {"thread_id": "1"}})
    """

    def __init__(
        self,
        url: str,
        *,
        serde: SerializerProtocol | None = None,
        namespace: str = "default",
        ttl: float | timedelta | None = None,
        refresh_on_read: bool = False,
        timeout: float = 30.0,
    ) -> None:
        """Does not connect yet.

        Args:
            url: `redis://`, `rediss://`, `unix://`, `redis+cluster://` or `redis+sentinel://`.
            serde: LangGraph's serializer, by default `JsonPlusSerializer`. Its bytes are stored as they are.
            namespace: Savers of one namespace share their threads.
            ttl: How long a thread lives after its last write, in seconds; by default for ever.
            refresh_on_read: Whether `get_tuple` counts as well.
            timeout: How long Redis may take to answer, in seconds.
        """
        super().__init__(serde=serde)
        self._core = Core(url, namespace, timeout)
        self._ttl_ms = _millis(ttl)
        self._refresh_ms = self._ttl_ms if refresh_on_read else None

    @classmethod
    def from_url(cls, url: str, **options: Any) -> RedisSaver:
        """As the constructor; the saver is a context manager, sync and async."""
        return cls(url, **options)

    @classmethod
    def from_conn_string(cls, conn_string: str, **options: Any) -> RedisSaver:
        """As `from_url`, under the name that other savers have for it."""
        return cls(conn_string, **options)

    def __repr__(self) -> str:
        return f"RedisSaver({self._core.address})"

    def __enter__(self) -> RedisSaver:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> RedisSaver:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Lets the connections go. The saver, and copies of it, cannot be used any more."""
        self._core.close()

    def setup(self) -> None:
        """Checks that Redis is there and new enough. Nothing has to be created."""
        self._core.wait(Op.check())

    async def asetup(self) -> None:
        """As `setup`."""
        await self._do(Op.check())

    # Reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that the config names, or the newest of its thread and namespace."""
        stored = self._core.wait(_calls.get_op(config, self._refresh_ms))
        return self._tuple(config, stored)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As `get_tuple`."""
        stored = await self._do(_calls.get_op(config, self._refresh_ms))
        return self._tuple(config, stored)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, newest first, a page at a time.

        Args:
            config: The thread; with a namespace, only that; with a checkpoint id, only that. None for all threads,
                the one that was written to last first.
            filter: What the metadata has to be equal to.
            before: Only what was stored before the checkpoint that this names.
            limit: How many at most.
        """
        steps = _listing.steps(self.serde, config, filter, before, limit)
        result: Any = None
        while True:
            try:
                step = steps.send(result)
            except StopIteration:
                return
            if isinstance(step, CheckpointTuple):
                yield step
                result = None
            else:
                result = self._core.wait(step)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """As `list`."""
        steps = _listing.steps(self.serde, config, filter, before, limit)
        result: Any = None
        while True:
            try:
                step = steps.send(result)
            except StopIteration:
                return
            if isinstance(step, CheckpointTuple):
                yield step
                result = None
            else:
                result = await self._do(step)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What each channel is rebuilt from: its last stored value, and the writes since."""
        if not channels:
            return {}
        found = self._core.wait(_calls.delta_op(config, channels))
        return _calls.histories_of(self.serde, channels, found)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """As `get_delta_channel_history`."""
        if not channels:
            return {}
        found = await self._do(_calls.delta_op(config, channels))
        return _calls.histories_of(self.serde, channels, found)

    # Writing

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Stores a checkpoint, and of its values those that are new."""
        self._core.wait(
            _calls.put_op(self.serde, config, checkpoint, metadata, new_versions, self._ttl_ms)
        )
        return _stored_config(config, checkpoint)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """As `put`."""
        await self._do(
            _calls.put_op(self.serde, config, checkpoint, metadata, new_versions, self._ttl_ms)
        )
        return _stored_config(config, checkpoint)

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Stores what a task wrote. The checkpoint need not be stored yet."""
        self._core.wait(
            _calls.put_writes_op(self.serde, config, writes, task_id, task_path, self._ttl_ms)
        )

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """As `put_writes`."""
        await self._do(
            _calls.put_writes_op(self.serde, config, writes, task_id, task_path, self._ttl_ms)
        )

    # Deleting and copying

    def delete_thread(self, thread_id: str) -> None:
        """Deletes everything of a thread, at once."""
        self._core.wait(Op.delete_thread(str(thread_id)))

    async def adelete_thread(self, thread_id: str) -> None:
        """As `delete_thread`."""
        await self._do(Op.delete_thread(str(thread_id)))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Deletes the checkpoints whose metadata names one of the runs. All threads are looked at."""
        self._core.wait(Op.delete_for_runs(_ids(run_ids, "run_ids")))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """As `delete_for_runs`."""
        await self._do(Op.delete_for_runs(_ids(run_ids, "run_ids")))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies everything of a thread. A target that is there already is a `ValueError`."""
        self._core.wait(Op.copy_thread(str(source_thread_id), str(target_thread_id)))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """As `copy_thread`."""
        await self._do(Op.copy_thread(str(source_thread_id), str(target_thread_id)))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Makes threads smaller.

        `keep_latest` keeps the newest checkpoint of each namespace, and the ancestors that its delta channels are
        rebuilt from. `delete` (or `delete_all`) keeps nothing.
        """
        self._core.wait(Op.prune(_ids(thread_ids, "thread_ids"), strategy))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """As `prune`."""
        await self._do(Op.prune(_ids(thread_ids, "thread_ids"), strategy))

    # Time to live

    def set_ttl(self, thread_id: str, ttl: float | timedelta | None) -> bool:
        """Gives a thread a TTL of its own, which wins over the savers' setting: from now on, and again from each write on.

        None is for ever. Returns whether there is such a thread.
        """
        return bool(self._core.wait(Op.set_ttl(str(thread_id), _millis(ttl), self._ttl_ms)))

    async def aset_ttl(self, thread_id: str, ttl: float | timedelta | None) -> bool:
        """As `set_ttl`."""
        return bool(await self._do(Op.set_ttl(str(thread_id), _millis(ttl), self._ttl_ms)))

    def reset_ttl(self, thread_id: str) -> bool:
        """Takes a thread's own TTL back: the saver's holds again. Returns whether there is such a thread."""
        return bool(self._core.wait(Op.set_ttl(str(thread_id), None, self._ttl_ms)))

    async def areset_ttl(self, thread_id: str) -> bool:
        """As `reset_ttl`."""
        return bool(await self._do(Op.set_ttl(str(thread_id), None, self._ttl_ms)))

    # Figures

    def stats(self) -> dict[str, Any]:
        """Counts, sizes and TTL coverage of all threads of the namespace."""
        result: dict[str, Any] = self._core.wait(Op.stats())
        return result

    async def astats(self) -> dict[str, Any]:
        """As `stats`."""
        result: dict[str, Any] = await self._do(Op.stats())
        return result

    def get_next_version(self, current: str | int | float | None, channel: None) -> str:
        """A version above this one. Its second half is random: two branches of a thread never share a version."""
        if current is None:
            number = 0
        elif isinstance(current, str):
            number = int(current.partition(".")[0])
        else:
            number = int(current)
        return f"{number + 1:032}.{random.getrandbits(64):016x}"

    def _do(self, op: Op) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._core.start(op, bridge_into(loop), loop, future)
        return future

    def _tuple(self, config: RunnableConfig, stored: Any) -> CheckpointTuple | None:
        if stored is None:
            return None
        return _calls.tuple_of(self.serde, stored, config["configurable"]["thread_id"])


def _stored_config(config: RunnableConfig, checkpoint: Checkpoint) -> RunnableConfig:
    configurable = config["configurable"]
    ns = configurable.get("checkpoint_ns", "")
    return _calls.config_of(configurable["thread_id"], ns, checkpoint["id"])


def _ids(ids: Sequence[str], name: str) -> list[str]:
    if isinstance(ids, str):
        raise TypeError(f"{name} is one string; expected a sequence of them")
    return [str(each) for each in ids]


def _millis(ttl: float | timedelta | None) -> int:
    if ttl is None:
        return 0
    seconds = ttl.total_seconds() if isinstance(ttl, timedelta) else float(ttl)
    if not 0 < seconds < 10**10:
        raise ValueError(f"a TTL of {seconds} s is not one; leave it out for ever")
    return max(1, round(seconds * 1000))
