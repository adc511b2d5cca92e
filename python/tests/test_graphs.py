"""LangGraph itself: interrupts, subgraphs, fan-out, time travel, durability, agents."""

from __future__ import annotations

import operator
import threading
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.prebuilt import create_react_agent
from langgraph.types import Command, Send, interrupt

from switchyard import RedisSaver


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    answer: str


def extend(state: list[str], writes: Any) -> list[str]:
    return state + [item for write in writes for item in write]


class Delta(TypedDict):
    log: Annotated[list[str], DeltaChannel(extend, snapshot_frequency=4)]


def thread(name: str = "t") -> Any:
    return {"configurable": {"thread_id": name}}


def asking(saver: BaseCheckpointSaver[Any]) -> Any:
    def ask(state: State) -> State:
        return {"answer": interrupt("what?"), "log": ["asked"]}

    builder = StateGraph(State)
    builder.add_node("first", lambda state: {"log": ["first"]})
    builder.add_node("ask", ask)
    builder.add_node("last", lambda state: {"log": [f"last {state['answer']}"]})
    builder.add_edge(START, "first")
    builder.add_edge("first", "ask")
    builder.add_edge("ask", "last")
    return builder.compile(checkpointer=saver)


def test_an_interrupt_waits_and_resumes(any_saver: RedisSaver) -> None:
    graph = asking(any_saver)
    stopped = graph.invoke({"log": ["in"]}, thread())
    assert stopped["__interrupt__"][0].value == "what?"
    assert graph.get_state(thread()).next == ("ask",)
    done = graph.invoke(Command(resume="this"), thread())
    assert done == {"log": ["in", "first", "asked", "last this"], "answer": "this"}


async def test_an_interrupt_waits_and_resumes_async(any_saver: RedisSaver) -> None:
    graph = asking(any_saver)
    await graph.ainvoke({"log": ["in"]}, thread())
    assert (await graph.aget_state(thread())).next == ("ask",)
    done = await graph.ainvoke(Command(resume="this"), thread())
    assert done["log"] == ["in", "first", "asked", "last this"]


def test_a_subgraph_is_interrupted_and_resumed(any_saver: RedisSaver) -> None:
    def ask(state: State) -> State:
        return {"answer": interrupt("inner?")}

    inner = StateGraph(State)
    inner.add_node("before", lambda state: {"log": ["before"]})
    inner.add_node("ask", ask)
    inner.add_edge(START, "before")
    inner.add_edge("before", "ask")
    builder = StateGraph(State)
    builder.add_node("inner", inner.compile())
    builder.add_node("after", lambda state: {"log": [f"after {state['answer']}"]})
    builder.add_edge(START, "inner")
    builder.add_edge("inner", "after")
    graph = builder.compile(checkpointer=any_saver)

    graph.invoke({"log": []}, thread())
    state = graph.get_state(thread(), subgraphs=True)
    assert state.tasks[0].state.values["log"] == ["before"]
    namespaces = {found.config["configurable"]["checkpoint_ns"] for found in any_saver.list(thread())}
    assert "" in namespaces and len(namespaces) == 2
    done = graph.invoke(Command(resume="x"), thread())
    assert done["log"] == ["before", "after x"]


@pytest.mark.parametrize("width", [1, 50])
async def test_a_fan_out_is_gathered_in_order(any_saver: RedisSaver, width: int) -> None:
    builder = StateGraph(State)
    builder.add_node("one", lambda state: {"log": [str(state["number"])]})
    builder.add_conditional_edges(START, lambda state: [Send("one", {"number": n}) for n in range(width)])
    graph = builder.compile(checkpointer=any_saver)
    expected = [str(number) for number in range(width)]
    assert graph.invoke({"log": []}, thread("sync"))["log"] == expected
    assert (await graph.ainvoke({"log": []}, thread("async")))["log"] == expected
    assert graph.get_state(thread("async")).values["log"] == expected


def test_a_failed_step_keeps_what_its_neighbours_wrote(any_saver: RedisSaver) -> None:
    calls: list[str] = []

    written = threading.Event()

    class Watched(type(any_saver)):  # type: ignore[misc]
        def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
            super().put_writes(config, writes, task_id, task_path)
            if ("log", ["works"]) in list(writes):
                written.set()

    any_saver.__class__ = Watched

    def works(state: State) -> State:
        calls.append("works")
        return {"log": ["works"]}

    def fails(state: State) -> State:
        calls.append("fails")
        assert written.wait(60)
        if calls.count("fails") == 1:
            raise RuntimeError("not yet")
        return {"log": ["fails"]}

    builder = StateGraph(State)
    builder.add_node("fails", fails)
    builder.add_node("works", works)
    builder.add_edge(START, "fails")
    builder.add_edge(START, "works")
    graph = builder.compile(checkpointer=any_saver)
    with pytest.raises(RuntimeError, match="not yet"):
        graph.invoke({"log": []}, thread())
    done = graph.invoke(None, thread())
    assert sorted(done["log"]) == ["fails", "works"]
    assert calls.count("works") == 1


def test_time_travel(any_saver: RedisSaver) -> None:
    graph = asking(any_saver)
    graph.invoke({"log": ["in"]}, thread())
    graph.invoke(Command(resume="one"), thread())
    history = list(graph.get_state_history(thread()))
    at_ask = next(state for state in history if state.next == ("ask",))
    forked = graph.update_state(at_ask.config, {"log": ["edited"]})
    graph.invoke(None, forked)
    done = graph.invoke(Command(resume="two"), thread())
    assert done["log"] == ["in", "first", "edited", "asked", "last two"]
    # What was before is still there.
    assert graph.get_state(history[0].config).values["log"] == ["in", "first", "asked", "last one"]
    assert len(list(graph.get_state_history(thread(), limit=3))) == 3


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_every_durability(any_saver: RedisSaver, durability: Any) -> None:
    builder = StateGraph(State)
    for number in range(5):
        builder.add_node(f"n{number}", lambda state, number=number: {"log": [str(number)]})
    builder.add_edge(START, "n0")
    for number in range(4):
        builder.add_edge(f"n{number}", f"n{number + 1}")
    builder.add_edge("n4", END)
    graph = builder.compile(checkpointer=any_saver)
    expected = [str(number) for number in range(5)]
    graph.invoke({"log": []}, thread("sync"), durability=durability)
    await graph.ainvoke({"log": []}, thread("async"), durability=durability)
    for name in ["sync", "async"]:
        assert graph.get_state(thread(name)).values["log"] == expected
        stored = len(list(any_saver.list(thread(name))))
        assert stored == (1 if durability == "exit" else 7)


async def test_an_agent_remembers(any_saver: RedisSaver) -> None:
    @tool
    def weather(city: str) -> str:
        """The weather somewhere."""
        return f"sun in {city}"

    class Model(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **options: Any) -> Any:
            return self

    call = {"name": "weather", "args": {"city": "Rome"}, "id": "1", "type": "tool_call"}
    answers = [AIMessage("", tool_calls=[call]), AIMessage("It is sunny."), AIMessage("You asked about Rome.")]
    agent = create_react_agent(Model(messages=iter(answers)), [weather], checkpointer=any_saver)
    first = await agent.ainvoke({"messages": [HumanMessage("weather in Rome?")]}, thread())
    assert [message.type for message in first["messages"]] == ["human", "ai", "tool", "ai"]
    again = await agent.ainvoke({"messages": [HumanMessage("what did I ask?")]}, thread())
    assert len(again["messages"]) == 6
    stored = agent.get_state(thread()).values["messages"]
    assert [message.content for message in stored] == [message.content for message in again["messages"]]
    assert stored[2].content == "sun in Rome"


async def test_a_delta_channel_through_the_graph(any_saver: RedisSaver) -> None:
    builder = StateGraph(Delta)
    builder.add_node("a", lambda state: {"log": [f"a{len(state['log'])}"]})
    builder.add_node("b", lambda state: {"log": [f"b{len(state['log'])}"]})
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    graph = builder.compile(checkpointer=any_saver)
    expected: list[str] = []
    for number in range(7):
        expected += [f"in{number}", f"a{len(expected) + 1}", f"b{len(expected) + 2}"]
        done = await graph.ainvoke({"log": [f"in{number}"]}, thread())
        assert done["log"] == expected
        if number in (2, 5):
            await any_saver.aprune(["t"])
        assert graph.get_state(thread()).values["log"] == expected
