"""Which checkpointer the environment asks for."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import pytest
from langgraph.checkpoint.conformance.test_utils import generate_config
from langgraph.checkpoint.memory import InMemorySaver
from servers import Redis

from switchyard import RedisSaver, create_checkpointer

VARIABLES = ["CHECKPOINTER_BACKEND", "REDIS_URL", "CHECKPOINTER_TTL_SECONDS", "CHECKPOINTER_NAMESPACE"]


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("backend", "url", "kind"),
    [
        (None, None, InMemorySaver),
        ("auto", None, InMemorySaver),
        ("auto", "redis://h", RedisSaver),
        (None, "redis://h", RedisSaver),
        ("memory", "redis://h", InMemorySaver),
        ("Redis", "redis://h", RedisSaver),
    ],
)
def test_the_choice(monkeypatch: pytest.MonkeyPatch, backend: str | None, url: str | None, kind: Any) -> None:
    if backend:
        monkeypatch.setenv("CHECKPOINTER_BACKEND", backend)
    if url:
        monkeypatch.setenv("REDIS_URL", url)
    assert type(create_checkpointer()) is kind


def test_a_choice_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="`postgres`; expected one of redis, memory, auto"):
        create_checkpointer("postgres")
    with pytest.raises(ValueError, match="REDIS_URL is not set"):
        create_checkpointer("redis")


async def test_what_langgraph_json_names(monkeypatch: pytest.MonkeyPatch, redis_server: Redis) -> None:
    path = json.loads('{"checkpointer": {"path": "switchyard.langgraph:checkpointer"}}')["checkpointer"]["path"]
    module, _, name = path.partition(":")
    factory = getattr(import_module(module), name)
    monkeypatch.setenv("REDIS_URL", redis_server.url)
    monkeypatch.setenv("CHECKPOINTER_TTL_SECONDS", "60")
    async with factory() as saver:
        assert isinstance(saver, RedisSaver)
        assert await saver.aget_tuple(generate_config("t")) is None
    with pytest.raises(RuntimeError, match="closed"):
        await saver.aget_tuple(generate_config("t"))
    monkeypatch.setenv("CHECKPOINTER_TTL_SECONDS", "soon")
    with pytest.raises(ValueError, match="`soon`; expected a number"):
        async with factory():
            pass
    monkeypatch.delenv("CHECKPOINTER_TTL_SECONDS")
    monkeypatch.setenv("CHECKPOINTER_BACKEND", "memory")
    async with factory() as saver:
        assert isinstance(saver, InMemorySaver)
