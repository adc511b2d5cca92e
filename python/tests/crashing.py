"""A process that carries a graph on from where the last one was killed, and says after each step that it is stored."""

from __future__ import annotations

import asyncio
import operator
import sys
from typing import Annotated, Any, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import Send, interrupt

from switchyard import RedisSaver

STEPS = 8


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


def build(saver: Any) -> Any:
    inner = StateGraph(State)
    inner.add_node("sub", lambda state: {"log": ["sub"]})
    inner.add_edge(START, "sub")

    builder = StateGraph(State)
    for number in range(STEPS):
        builder.add_node(f"step{number}", lambda state, number=number: {"log": [f"step {number}"]})
        builder.add_edge(f"step{number - 1}" if number else START, f"step{number}")
    builder.add_node("ask", lambda state: {"log": [f"asked {interrupt('?')}"]})
    builder.add_edge(f"step{STEPS - 1}", "ask")
    builder.add_node("fan", lambda state: {"log": [state["name"]]})
    builder.add_conditional_edges("ask", lambda state: [Send("fan", {"name": name}) for name in ("left", "right")])
    builder.add_node("inner", lambda state: {"log": inner.compile().invoke({"log": []})["log"]})
    builder.add_edge("fan", "inner")
    return builder.compile(checkpointer=saver)


async def main() -> None:
    url, namespace, mode = sys.argv[1:]
    saver = RedisSaver.from_url(url, namespace=namespace)
    graph = build(saver)
    config: Any = {"configurable": {"thread_id": "t"}}
    input = None if saver.get_tuple(config) else {"log": ["in"]}
    if mode == "sync":
        for _ in graph.stream(input, config, durability="sync"):
            print("stored", flush=True)
    else:
        async for _ in graph.astream(input, config, durability="sync"):
            print("stored", flush=True)
    print("interrupted", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
