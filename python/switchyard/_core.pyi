import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

_Typed = tuple[str, bytes]

IS_OPTIMIZED: bool
"""Whether it was built to be fast: what is measured with another build says nothing."""

class Op:
    """Something to be done, once."""

    @staticmethod
    def check() -> Op: ...
    @staticmethod
    def put(
        thread: str,
        ns: str,
        id: str,
        parent: str | None,
        run: str | None,
        delta: Sequence[str],
        versions: Mapping[str, str | int | float],
        checkpoint: _Typed,
        metadata: _Typed,
        values: list[tuple[str, str | int | float, _Typed]],
        emptied: dict[str, str | int | float],
        ttl_ms: int,
    ) -> Op: ...
    @staticmethod
    def put_writes(
        thread: str,
        ns: str,
        checkpoint: str,
        task: str,
        path: str,
        writes: list[tuple[str, _Typed]],
        ttl_ms: int,
    ) -> Op: ...
    @staticmethod
    def get(thread: str, ns: str, id: str | None, refresh_ms: int | None) -> Op: ...
    @staticmethod
    def page(
        thread: str,
        ns: str | None,
        id: str | None,
        before: str | None,
        after_seq: int | None,
        count: int,
        heads_only: bool,
    ) -> Op: ...
    @staticmethod
    def delete_thread(thread: str) -> Op: ...
    @staticmethod
    def delete_for_runs(runs: Sequence[str]) -> Op: ...
    @staticmethod
    def copy_thread(source: str, target: str) -> Op: ...
    @staticmethod
    def prune(threads: Sequence[str], strategy: str) -> Op: ...
    @staticmethod
    def delta_history(thread: str, ns: str, id: str | None, channels: Sequence[str]) -> Op: ...
    @staticmethod
    def set_ttl(thread: str, own_ms: int | None, saver_ms: int) -> Op: ...
    @staticmethod
    def threads() -> Op: ...
    @staticmethod
    def thread_info(thread: str) -> Op: ...
    @staticmethod
    def stats() -> Op: ...

class Bridge:
    """The way of results into one event loop."""

    def __init__(self) -> None: ...
    def fileno(self) -> int: ...
    def drain(self, event_loop: asyncio.AbstractEventLoop) -> None: ...

class Core:
    """The connection that a saver holds."""

    def __init__(self, url: str, namespace: str, timeout_seconds: float) -> None: ...
    @property
    def address(self) -> str: ...
    def wait(self, op: Op) -> Any: ...
    def start(
        self,
        op: Op,
        bridge: Bridge,
        event_loop: asyncio.AbstractEventLoop,
        future: asyncio.Future[Any],
    ) -> None: ...
    def close(self) -> None: ...
