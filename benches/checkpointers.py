"""LangGraph checkpointers side by side, in one run on one machine.

    python benches/checkpointers.py [--only NAME,…] [--rounds N] [--json]

`InMemorySaver`, the SQLite and the Postgres saver from PyPI, and `switchyard.RedisSaver`, each on

- pair: `put` and `get_tuple` of a checkpoint with 20 channels and about 4 KiB, sync and async, one after the other;
- graph: a graph of 10 nodes on 100 threads, 10 at a time, async.

Redis and Postgres are started here, in temporary folders: Redis with an AOF that is synced every second and, as a row of
its own, with every write; Postgres and SQLite as they come, which is synced with every write. In each round the savers do
the same thing one right after the other, in another order each time, so that other load on the machine hits all of
them. The figures are medians of rounds after the first. What is compared are the figures of one round: a ratio is the median
of the ratios of all rounds, and the least and the greatest of them stand beside it. The savers need a processor besides that of
the server, so a machine that is busy with something else says nothing: how idle it was between measurements is shown, too.
Needs `benches/requirements.txt`, the package itself (`maturin develop --release`), redis-server and Postgres.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import operator
import os
import pwd
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Annotated, Any, TypedDict
from uuid import uuid4

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from switchyard import RedisSaver, _core

CHANNELS, NODES, THREADS, AT_A_TIME = 20, 10, 100, 10
PAIRS = 500
# What the one before has left to do in the background, such as a vacuum, is not to be the next one's cost.
PAUSE_S = 0.3

Rounds = dict[str, dict[str, list[float]]]
"""Name of a saver → kind → a figure for each round."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def started(stack: ExitStack, port: int, command: list[str], **options: Any) -> None:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
    stack.callback(process.wait)
    stack.callback(process.terminate)
    for _ in range(600):
        if answers(port):
            return
        time.sleep(0.1)
    raise SystemExit(f"{command[0]} does not answer")


def redis_url(stack: ExitStack, folder: Path, fsync: str) -> str:
    port, own = free_port(), folder / f"redis-{fsync}"
    own.mkdir()
    options = ["--save", "", "--appendonly", "yes", "--appendfsync", fsync, "--dir", str(own)]
    started(stack, port, ["redis-server", "--port", str(port), "--bind", "127.0.0.1", *options])
    return f"redis://127.0.0.1:{port}"


def postgres_url(stack: ExitStack, folder: Path) -> str:
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    program = programs[-1] if programs else Path(shutil.which("postgres") or "").parent
    port, own = free_port(), folder / "postgres"
    own.mkdir()
    options: dict[str, Any] = {"cwd": own}
    if os.geteuid() == 0:
        user = pwd.getpwnam("postgres")
        os.chown(own, user.pw_uid, user.pw_gid)
        os.chmod(folder, 0o755)
        options |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    subprocess.run(
        [program / "initdb", "-D", own / "data", "-U", "bench", "-A", "trust"],
        check=True, stdout=subprocess.DEVNULL, **options,
    )  # fmt: skip
    started(
        stack, port, [str(program / "postgres"), "-D", str(own / "data"), "-p", str(port), "-k", str(own)], **options
    )
    return f"postgresql://bench@127.0.0.1:{port}/postgres"


def checkpoint(number: int, saver: Any, before: Any) -> Any:
    """20 channels of 200 characters, three of which change from step to step."""
    versions = dict(before["channel_versions"]) if before else {}
    values = dict(before["channel_values"]) if before else {}
    changed = range(CHANNELS) if not before else [(3 * number + offset) % CHANNELS for offset in range(3)]
    new = {}
    for channel in changed:
        name = f"channel_{channel}"
        values[name] = f"{number:06} " + "x" * 193
        new[name] = versions[name] = saver.get_next_version(versions.get(name), None)
    made = empty_checkpoint()
    made |= {"channel_values": values, "channel_versions": versions, "versions_seen": {"node": dict(versions)}}
    return made, new


def pairs_sync(saver: Any) -> float:
    config: Any = {"configurable": {"thread_id": uuid4().hex, "checkpoint_ns": ""}}
    made: Any = None
    begun = time.perf_counter()
    for number in range(PAIRS):
        made, new = checkpoint(number, saver, made)
        config = saver.put(config, made, {"source": "loop", "step": number, "parents": {}}, new)
        found = saver.get_tuple(config)
        assert found.checkpoint["channel_values"] == made["channel_values"]
    return PAIRS / (time.perf_counter() - begun)


async def pairs_async(saver: Any) -> float:
    config: Any = {"configurable": {"thread_id": uuid4().hex, "checkpoint_ns": ""}}
    made: Any = None
    begun = time.perf_counter()
    for number in range(PAIRS):
        made, new = checkpoint(number, saver, made)
        config = await saver.aput(config, made, {"source": "loop", "step": number, "parents": {}}, new)
        found = await saver.aget_tuple(config)
        assert found.checkpoint["channel_values"] == made["channel_values"]
    return PAIRS / (time.perf_counter() - begun)


class State(TypedDict):
    log: Annotated[list[str], operator.add]
    last: str


def graph(saver: Any) -> Any:
    builder = StateGraph(State)
    for number in range(NODES):
        async def node(state: State, number: int = number) -> State:
            return {"log": [f"node {number} " + "x" * 100], "last": str(number)}

        builder.add_node(f"node{number}", node)
        builder.add_edge(f"node{number - 1}" if number else START, f"node{number}")
    return builder.compile(checkpointer=saver)


async def graphs(saver: Any) -> float:
    """Seconds for all threads."""
    compiled, room = graph(saver), asyncio.Semaphore(AT_A_TIME)

    async def one() -> None:
        async with room:
            done = await compiled.ainvoke({"log": [], "last": ""}, {"configurable": {"thread_id": uuid4().hex}})
            assert len(done["log"]) == NODES

    begun = time.perf_counter()
    await asyncio.gather(*[one() for _ in range(THREADS)])
    return time.perf_counter() - begun


async def savers(
    stack: ExitStack, astack: AsyncExitStack, folder: Path, only: set[str]
) -> dict[str, tuple[Any, Any]]:
    """Name → sync saver and async saver."""
    made: dict[str, tuple[Any, Any]] = {}

    def is_wanted(name: str) -> bool:
        return not only or name in only

    if is_wanted("memory"):
        made["memory"] = (InMemorySaver(), InMemorySaver())
    if is_wanted("sqlite"):
        path = str(folder / "checkpoints.sqlite")
        made["sqlite"] = (
            stack.enter_context(SqliteSaver.from_conn_string(path)),
            await astack.enter_async_context(AsyncSqliteSaver.from_conn_string(path + "-async")),
        )
    if is_wanted("postgres"):
        url = postgres_url(stack, folder)
        # As its documentation has it for production: a pool, autocommit, no prepared statements of other connections.
        options: Any = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
        sync = PostgresSaver(stack.enter_context(ConnectionPool(url, max_size=AT_A_TIME, kwargs=options)))
        pool = AsyncConnectionPool(url, max_size=AT_A_TIME, kwargs=options, open=False)
        native = AsyncPostgresSaver(await astack.enter_async_context(pool))
        sync.setup()
        made["postgres"] = (sync, native)
    for name, fsync in [("switchyard", "everysec"), ("switchyard, every write synced", "always")]:
        if is_wanted(name):
            saver = stack.enter_context(RedisSaver.from_url(redis_url(stack, folder, fsync)))
            made[name] = (saver, saver)
    return made


def ticks() -> tuple[int, int]:
    """Of all processors: idle, and all."""
    try:
        spent = [int(each) for each in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    except OSError:
        return 0, 0
    return spent[3] + spent[4], sum(spent)


async def pause(idle: list[float]) -> None:
    before = ticks()
    await asyncio.sleep(PAUSE_S)
    after = ticks()
    if after[1] > before[1]:
        idle.append((after[0] - before[0]) / (after[1] - before[1]))
    # What other savers hold in memory is not looked at again while the next one is measured.
    gc.collect()
    gc.freeze()


async def measure(rounds: int, only: set[str]) -> tuple[Rounds, list[float]]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="checkpointers-")))
        async with AsyncExitStack() as astack:
            found = await savers(stack, astack, folder, only)
            figures: Rounds = {name: {"sync": [], "async": [], "graph": []} for name in found}
            idle: list[float] = []
            for round in range(rounds + 1):
                # Each is behind another one in each round.
                order = list(found)
                order = order[round % len(order) :] + order[: round % len(order)]
                for kind in ("sync", "async", "graph"):
                    for name in order:
                        sync, native = found[name]
                        await pause(idle)
                        if kind == "sync":
                            figure = pairs_sync(sync)
                        else:
                            figure = await (pairs_async(native) if kind == "async" else graphs(native))
                        # The first round warms up.
                        if round:
                            figures[name][kind].append(figure)
                        print(".", end="", file=sys.stderr, flush=True)
            print(file=sys.stderr)
            return figures, idle


def ratio(ours: list[float], theirs: list[float]) -> str:
    ratios = [own / their for own, their in zip(ours, theirs, strict=True)]
    return f"{statistics.median(ratios):.2f}x ({min(ratios):.2f}-{max(ratios):.2f})"


def show(figures: Rounds, idle: list[float]) -> None:
    print(f"{'':31} {'put+get sync':>20} {'put+get async':>20} {'graphs':>20}")
    for name, kinds in figures.items():
        sync, native, graph = (statistics.median(kinds[kind]) for kind in ("sync", "async", "graph"))
        print(f"{name:31} {sync:>18,.0f}/s {native:>18,.0f}/s {graph:>18.2f} s")
    ours = figures.get("switchyard")
    for other in ("postgres", "sqlite", "memory"):
        if ours and other in figures:
            cells = [ratio(ours[kind], figures[other][kind]) for kind in ("sync", "async", "graph")]
            print(f"switchyard / {other:18} {cells[0]:>20} {cells[1]:>20} {cells[2]:>20}")
    if idle:
        print(f"between measurements the processors were {statistics.median(idle):.0%} idle ({min(idle):.0%} at worst)")


def main() -> None:
    parser = argparse.ArgumentParser(description="LangGraph checkpointers side by side")
    parser.add_argument("--only", default="", help="names of savers, with commas")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    only = {name for name in args.only.split(",") if name}
    # The tests build in place as well, and what they build is half as fast.
    if not _core.IS_OPTIMIZED:
        raise SystemExit("switchyard is not built for speed\nhint: cd python && maturin develop --release")
    figures, idle = asyncio.run(measure(args.rounds, only))
    print(json.dumps({"rounds": figures, "idle": idle})) if args.json else show(figures, idle)


if __name__ == "__main__":
    main()
