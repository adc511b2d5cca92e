"""What a `langgraph.json` names:

    {"checkpointer": {"path": "switchyard.langgraph:checkpointer"}}

Its options are environment variables: `REDIS_URL`, `CHECKPOINTER_NAMESPACE`, `CHECKPOINTER_TTL_SECONDS`,
`CHECKPOINTER_REFRESH_ON_READ`.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from switchyard.backend import create_checkpointer
from switchyard.saver import RedisSaver


@asynccontextmanager
async def checkpointer() -> AsyncIterator[BaseCheckpointSaver[str]]:
    """The checkpointer that the environment describes, closed at the end."""
    saver = create_checkpointer(**_options())
    if not isinstance(saver, RedisSaver):
        yield saver
        return
    async with saver:
        await saver.asetup()
        yield saver


def _options() -> dict[str, Any]:
    options: dict[str, Any] = {}
    if namespace := os.environ.get("CHECKPOINTER_NAMESPACE"):
        options["namespace"] = namespace
    if ttl := os.environ.get("CHECKPOINTER_TTL_SECONDS"):
        try:
            options["ttl"] = float(ttl)
        except ValueError:
            raise ValueError(f"CHECKPOINTER_TTL_SECONDS is `{ttl}`; expected a number of seconds") from None
    if refresh := os.environ.get("CHECKPOINTER_REFRESH_ON_READ"):
        options["refresh_on_read"] = refresh.strip().lower() in ("1", "true", "yes", "on")
    return options
