"""Two processes, and one that is killed between steps: the graph goes on in the other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from crashing import build
from langgraph.types import Command
from servers import Redis

from switchyard import RedisSaver

STEPS = 8


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_graph_survives_kill_between_steps(redis_server: Redis, namespace: str, tmp_path: Path, mode: str) -> None:
    """Each process does a step or two, says so, and is killed with SIGKILL."""
    kills = 0
    while True:
        process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("crashing.py")), redis_server.url, namespace, mode],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line.strip())
            if line.startswith("stored") and kills < STEPS - 1:
                os.kill(process.pid, signal.SIGKILL)
                kills += 1
                break
        process.stdout.close()
        process.wait()
        if lines and lines[-1] == "interrupted":
            break
        assert process.returncode == -signal.SIGKILL, lines
    assert kills >= 3
    with RedisSaver.from_url(redis_server.url, namespace=namespace) as saver:
        graph = build(saver)
        config: Any = {"configurable": {"thread_id": "t"}}
        assert graph.get_state(config).next == ("ask",)
        done = graph.invoke(Command(resume="go"), config)
    assert done["log"] == ["in", *[f"step {number}" for number in range(STEPS)], "asked go", "left", "right", "sub"]
