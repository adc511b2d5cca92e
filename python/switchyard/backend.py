"""Which checkpointer: by the environment."""

from __future__ import annotations

import os
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver

from switchyard.saver import RedisSaver

BACKENDS = ("redis", "memory", "auto")


def create_checkpointer(
    backend: str | None = None, url: str | None = None, **options: Any
) -> BaseCheckpointSaver[str]:
    """A checkpointer as the environment wants it.

    Args:
        backend: `redis`, `memory`, or `auto`: Redis if there is a URL, else memory. By default
            `CHECKPOINTER_BACKEND`, or `auto`.
        url: Where Redis is. By default `REDIS_URL`.
        options: For `RedisSaver`; they have no meaning for memory.
    """
    backend = (backend or os.environ.get("CHECKPOINTER_BACKEND") or "auto").strip().lower()
    url = url or os.environ.get("REDIS_URL") or None
    if backend not in BACKENDS:
        raise ValueError(f"CHECKPOINTER_BACKEND is `{backend}`; expected one of {', '.join(BACKENDS)}")
    if backend == "redis" and url is None:
        raise ValueError("CHECKPOINTER_BACKEND is `redis`, and REDIS_URL is not set")
    if backend == "memory" or url is None:
        return InMemorySaver()
    return RedisSaver.from_url(url, **options)
