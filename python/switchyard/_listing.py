"""Listing checkpoints: which operations, one after the other. The saver does them, and sends their results in."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple, get_checkpoint_id
from langgraph.checkpoint.serde.base import SerializerProtocol

from switchyard import _calls
from switchyard._core import Op

_PAGE = 50

# Yields an operation to be done, or a tuple for the caller.
Steps = Generator["Op | CheckpointTuple", Any, None]


def steps(
    serde: SerializerProtocol,
    config: RunnableConfig | None,
    filter: dict[str, Any] | None,
    before: RunnableConfig | None,
    limit: int | None,
) -> Steps:
    """Newest first. Without a config: all threads, the one that was written to last first."""
    left = limit
    if config is None:
        threads: list[Any] = [thread for thread, _ in (yield Op.threads())]
        ns = checkpoint_id = None
    else:
        _calls.thread_of(config)
        threads = [config["configurable"]["thread_id"]]
        ns = config["configurable"].get("checkpoint_ns")
        checkpoint_id = get_checkpoint_id(config)
    before_id = get_checkpoint_id(before) if before else None
    for thread in threads:
        after_seq: int | None = None
        while left is None or left > 0:
            count = _PAGE if left is None or filter else min(left, _PAGE)
            page = Op.page(str(thread), ns, checkpoint_id, before_id, after_seq, count, bool(filter))
            items, after_seq = yield page
            for item in items:
                if left is not None and left <= 0:
                    return
                if filter:
                    if not _calls.is_match(serde, item, filter):
                        continue
                    item = yield Op.get(item[0], item[1], item[2], None)
                    if item is None:
                        continue
                if left is not None:
                    left -= 1
                yield _calls.tuple_of(serde, item, thread)
            if after_seq is None:
                break
