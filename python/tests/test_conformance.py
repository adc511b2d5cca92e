"""LangGraph's own conformance suite: every capability, none skipped, async and sync, on a server and on a cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import Capability

from switchyard import RedisSaver


class SyncSaver(RedisSaver):
    """The suite calls async methods: here they are the sync ones."""

    async def aput(self, *args: Any) -> Any:
        return self.put(*args)

    async def aput_writes(self, *args: Any, **kwargs: Any) -> None:
        self.put_writes(*args, **kwargs)

    async def aget_tuple(self, config: Any) -> Any:
        return self.get_tuple(config)

    async def alist(self, config: Any, **kwargs: Any) -> AsyncIterator[Any]:
        for found in self.list(config, **kwargs):
            yield found

    async def adelete_thread(self, thread_id: str) -> None:
        self.delete_thread(thread_id)

    async def adelete_for_runs(self, run_ids: Any) -> None:
        self.delete_for_runs(run_ids)

    async def acopy_thread(self, source: str, target: str) -> None:
        self.copy_thread(source, target)

    async def aprune(self, thread_ids: Any, *, strategy: str = "keep_latest") -> None:
        self.prune(thread_ids, strategy=strategy)


@pytest.mark.parametrize("kind", [RedisSaver, SyncSaver])
async def test_every_capability(url: str, kind: type[RedisSaver]) -> None:
    @checkpointer_test(name=f"{kind.__name__} {url}")
    async def registered() -> AsyncIterator[RedisSaver]:
        async with kind.from_url(url, namespace=uuid4().hex) as saver:
            yield saver

    results: list[str] = []
    report = await validate(registered)
    for capability in Capability:
        result = report.results[capability.value]
        assert result.detected and not result.tests_skipped, f"{capability.value} was skipped"
        assert result.tests_passed, f"{capability.value} has no tests"
        results += result.failures or []
    assert not results, "\n".join(results)
