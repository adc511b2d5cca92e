"""redis-py alone serves nodes of the real program: streams in, signals out, through crashes of every part."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from servers import PATIENCE_S, Redis

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "target/debug/switchyard"
STREAM = "wf.tasks.function"

GREETING = {
    "name": "greeting",
    "input": {"type": "object", "required": ["name"]},
    "nodes": {
        "greet": {"type": "function", "function": "greet", "input": {"name": "${{ input.name }}"}},
        "count": {
            "type": "function",
            "function": "add",
            "needs": ["greet"],
            "input": {"a": "${{ size(nodes.greet.output.greeting) }}", "b": 1},
        },
        "never": {
            "type": "function",
            "function": "greet",
            "needs": ["greet"],
            "when": "${{ input.name == 'nobody' }}",
        },
    },
    "output": {
        "said": "${{ nodes.greet.output.greeting }}",
        "count": "${{ nodes.count.output }}",
        "never": "${{ nodes.never.status }}",
    },
}

ONE = {
    "name": "one",
    "nodes": {
        "work": {
            "type": "function",
            "function": "anything",
            "retry": {"max_attempts": 3, "initial": "10ms", "jitter": False},
        },
        "after": {"type": "transform", "needs": ["work"], "value": "${{ nodes.work.output }}"},
    },
}


class Server:
    """`switchyard up` over a Redis, with its archive in a folder."""

    def __init__(self, folder: Path, server: Redis, **settings: str) -> None:
        self.folder, self.redis = folder, server
        self.settings = {"SWITCHYARD_PLAIN_FUNCTIONS": "*", **settings}
        self.connection = redis.Redis(port=server.port, decode_responses=True, protocol=2)
        self.start()

    def start(self) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SWITCHYARD_")}
        environment |= {"REDIS_URL": self.redis.url, **self.settings}
        command = [str(PROGRAM), "up", "--listen", "127.0.0.1:0", "--data", str(self.folder / "data")]
        self.process = subprocess.Popen(
            command, env=environment, stderr=subprocess.PIPE, text=True, cwd=self.folder
        )
        assert self.process.stderr is not None
        said = []
        for line in self.process.stderr:
            said.append(line)
            if "http://" in line:
                self.url = "http://" + line.split("http://")[1].split("/")[0].strip()
                return
        raise AssertionError("".join(said))

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def call(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json", "accept": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            return json.loads(error.read())

    def submit(self, workflow: object, given: object = None) -> str:
        run: str = self.call("POST", "/v1/runs", {"workflow": workflow, "input": given or {}})["run_id"]
        return run

    def ended(self, run: str) -> Any:
        return until(lambda: (view := self.call("GET", f"/v1/runs/{run}")).get("ended_at") and view)

    def read(self, reader: str) -> tuple[str, dict[str, str]]:
        """The next task, as a plain reader reads it."""
        found = until(lambda: self.connection.xreadgroup("workers", reader, {STREAM: ">"}, count=1, block=1000))
        [[_, [(entry, fields)]]] = found
        return entry, fields

    def push(self, signal: object) -> None:
        text = signal if isinstance(signal, (str, bytes)) else json.dumps(signal)
        self.connection.rpush("completion_signals", text)

    def letters(self) -> list[dict[str, Any]]:
        letters: list[dict[str, Any]] = self.call("GET", "/v1/dead-letters")["dead_letters"]
        return letters


def until(found: Callable[[], Any]) -> Any:
    """What is there in the end."""
    patience = time.monotonic() + PATIENCE_S
    while not (answer := found()):
        assert time.monotonic() < patience, "it did not come"
        time.sleep(0.02)
    return answer


@pytest.fixture
def own_redis() -> Iterator[Redis]:
    server = Redis("--appendonly", "no")
    yield server
    server.stop()


@pytest.fixture
def server(tmp_path: Path, own_redis: Redis) -> Iterator[Server]:
    server = Server(tmp_path, own_redis, SWITCHYARD_PLAIN_LEASE="1s", SWITCHYARD_WORKER_DELIVERIES="2")
    yield server
    server.kill()


def test_the_example_serves_a_workflow(server: Server) -> None:
    environment = {**os.environ, "REDIS_URL": server.redis.url}
    example = [sys.executable, str(ROOT / "examples/plain_worker.py")]
    workers = [subprocess.Popen(example, env=environment) for _ in range(2)]
    try:
        runs = [server.submit(GREETING, {"name": f"Ada {n}"}) for n in range(10)]
        for n, run in enumerate(runs):
            view = server.ended(run)
            assert view["output"] == {"said": f"Hello, Ada {n}!", "count": 14, "never": "skipped"}, view
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    assert server.letters() == []
    until(lambda: server.connection.xlen(STREAM) == 0)
    assert server.connection.xpending(STREAM, "workers")["pending"] == 0


def test_the_contract_as_it_is_written(server: Server) -> None:
    """A reader that knows nothing but `run_id` and `node_id`."""
    run = server.submit(ONE)
    _, task = server.read("reader")
    assert (task["run_id"], task["node_id"]) == (run, "work")
    about = {"run_id": run, "node_id": "work"}
    server.push({**about, "status": "failed", "error": "not yet"})
    _, task = server.read("reader")
    server.push({**about, "output": {"n": 1}})
    server.push({**about, "output": {"n": 2}})
    server.push({**about, "status": "failed"})
    assert server.ended(run)["output"] == {"n": 1}
    server.push(about)
    until(lambda: server.connection.llen("completion_signals") == 0)
    events = server.call("GET", f"/v1/runs/{run}/events")["events"]
    assert [event["type"] for event in events].count("node_retrying") == 1
    assert [event["type"] for event in events].count("node_succeeded") == 2
    until(lambda: server.connection.xlen(STREAM) == 0)
    assert server.letters() == []


def test_a_worker_that_has_claimed_a_task_logs(server: Server) -> None:
    run = server.submit(ONE)
    entry, _ = server.read("reader")
    about = {"run_id": run, "node_id": "work", "entry_id": entry}
    server.push({**about, "status": "log", "lines": ["before it was claimed"]})
    server.push({**about, "status": "started"})
    answer = server.connection.blpop([f"task:{run}:work:{entry}"], timeout=PATIENCE_S)
    about["claim"] = json.loads(answer[1])["claim"]
    server.push({**about, "status": "log", "lines": ["one", {"message": "two", "level": "warn"}]})
    server.push({**about, "output": 1})
    assert server.ended(run)["output"] == 1
    [logged] = server.call("GET", f"/v1/runs/{run}/logs")["logs"]
    assert (logged["node"], logged["attempt"]) == ("work", 1)
    assert [(line["message"], line.get("level")) for line in logged["lines"]] == [("one", None), ("two", "warn")]
    server.push({**about, "status": "log", "lines": [5]})
    assert "a line is text" in until(server.letters)[0]["reason"]


def test_what_was_done_is_undone(server: Server) -> None:
    """A compensation is a task like any other: asked for with its input, and settled."""
    undo = {"type": "function", "function": "cancel", "input": {"seat": "${{ nodes.book.output.seat }}"}}
    book = {"type": "function", "function": "book", "compensate": undo}
    pay = {"type": "function", "function": "pay", "needs": ["book"]}
    run = server.submit({"name": "trip", "nodes": {"book": book, "pay": pay}})
    for node, settled in [("book", {"output": {"seat": "7a"}}), ("pay", {"status": "failed", "error": "no money"})]:
        entry, _ = server.read("reader")
        server.push({"run_id": run, "node_id": node, "entry_id": entry, **settled})
    entry, task = server.read("reader")
    about = {"run_id": run, "node_id": task["node_id"], "entry_id": entry}
    server.push({**about, "status": "started"})
    answer = server.connection.blpop([f"task:{run}:{task['node_id']}:{entry}"], timeout=PATIENCE_S)
    claimed = json.loads(answer[1])
    assert (task["node_id"], claimed["input"]) == ("book/compensate", {"seat": "7a"}), claimed
    server.push({**about, "claim": claimed["claim"], "output": None})
    view = server.ended(run)
    assert (view["status"], view["error"]["message"]) == ("failed", "no money"), view
    assert "not_compensated" not in view["error"], view
    assert server.letters() == []


def test_signals_that_make_no_sense_are_dead_letters(server: Server) -> None:
    run = server.submit(ONE)
    server.read("reader")
    unknown = "run_" + "0" * 26
    malformed = {
        "{": "not JSON",
        '"text"': "a JSON object is expected",
        "{}": "`run_id` is missing",
        json.dumps({"run_id": 5}): "`run_id` has to be text",
        json.dumps({"run_id": run, "node_id": "nowhere"}): f"{run} has no node `nowhere`",
        json.dumps({"run_id": unknown, "node_id": "work"}): f"there is no run {unknown}",
        json.dumps({"run_id": run, "node_id": "work", "status": "perhaps"}): "`status` is `perhaps`",
        json.dumps({"run_id": run, "node_id": "work", "result_ref": f"cas://sha256:{'0' * 64}"}): "there is no payload",
    }
    for text in malformed:
        server.push(text)
    server.push(b"\xff\xfe")
    listed = until(lambda: len(found := server.letters()) == len(malformed) + 1 and found)
    # A list has no signals.
    letters = [server.call("GET", f"/v1/dead-letters/{letter['id']}") for letter in listed]
    reasons = {letter["signal"]: letter["reason"] for letter in letters}
    for text, reason in malformed.items():
        assert reason in reasons[text], reasons[text]
    assert all(letter["kind"] == "signal" for letter in letters)
    # What was wrong outside can be put right, and the signal looked at again.
    [letter] = [letter for letter in letters if letter["signal"] == "{"]
    assert server.call("POST", f"/v1/dead-letters/{letter['id']}/redrive", {})["run"] is None
    again = until(lambda: [found for found in server.letters() if found["id"] == letter["id"]])
    assert again[0]["at"] >= letter["at"]
    assert server.call("POST", "/v1/dead-letters/purge", {"all": True})["purged"] == len(malformed) + 1
    server.push({"run_id": run, "node_id": "work"})
    assert server.ended(run)["status"] == "succeeded"


def test_a_reader_that_dies(server: Server) -> None:
    run = server.submit(ONE)
    first, _ = server.read("dies")
    second, task = server.read("lives")
    assert (first != second, task["run_id"]) == (True, run)
    server.push({"run_id": run, "node_id": "work", "entry_id": first, "output": "too late for this delivery"})
    server.push({"run_id": run, "node_id": "work", "entry_id": second, "output": "in time"})
    assert server.ended(run)["output"] == "in time"

    poison = server.submit(ONE)
    server.read("dies")
    server.read("dies")
    assert server.ended(poison)["status"] == "failed"
    [letter] = server.letters()
    assert (letter["run_id"], letter["node"], letter["queue"], letter["kind"]) == (poison, "work", "function:anything", "task")
    shown = server.call("GET", f"/v1/dead-letters/{letter['id']}")
    assert [delivery["worker"] for delivery in shown["deliveries"]] == ["dies", "dies"]
    queues = server.call("GET", "/v1/queues")
    assert (queues["dead_letters"], queues["queues"][0]["dead_letters"]) == (1, 1)
    redriven = server.call("POST", f"/v1/dead-letters/{letter['id']}/redrive", {})
    assert redriven["run"]["run_id"] == poison
    assert server.letters() == []
    server.read("lives")
    server.push({"run_id": poison, "node_id": "work", "output": 5})
    assert server.ended(poison)["output"] == 5


def test_a_worker_that_takes_too_long_has_failed(server: Server) -> None:
    """The limit counts from `started`; later heartbeats do not extend it."""
    work = {"type": "function", "function": "slow", "timeout": "2s"}
    run = server.submit({"name": "slow", "nodes": {"work": work}})
    entry, _ = server.read("reader")
    about = {"run_id": run, "node_id": "work", "entry_id": entry}
    server.push({**about, "status": "started"})
    answer = server.connection.blpop([f"task:{run}:work:{entry}"], timeout=PATIENCE_S)
    claimed = json.loads(answer[1])
    assert claimed["timeout"] == "2s", claimed

    def beaten() -> Any:
        server.push({**about, "claim": claimed["claim"], "status": "heartbeat"})
        return (view := server.call("GET", f"/v1/runs/{run}")).get("ended_at") and view

    view = until(beaten)
    assert (view["status"], view["error"]["code"]) == ("failed", "timeout"), view
    server.push({**about, "claim": claimed["claim"], "output": "too late"})
    until(lambda: server.connection.llen("completion_signals") == 0)
    assert server.call("GET", f"/v1/runs/{run}") == view


def test_the_result_of_a_claimed_task_is_remembered(server: Server) -> None:
    work = {"type": "function", "function": "dear", "cache": {"ttl": "1h"}}
    workflow = {"name": "dear", "nodes": {"work": work}}
    run = server.submit(workflow)
    entry, _ = server.read("reader")
    about = {"run_id": run, "node_id": "work", "entry_id": entry}
    server.push({**about, "status": "started"})
    answer = server.connection.blpop([f"task:{run}:work:{entry}"], timeout=PATIENCE_S)
    server.push({**about, "claim": json.loads(answer[1])["claim"], "output": {"n": 7}})
    assert server.ended(run)["output"] == {"n": 7}
    again = server.submit(workflow)
    entry, _ = server.read("reader")
    server.push({"run_id": again, "node_id": "work", "entry_id": entry, "status": "started"})
    answer = server.connection.blpop([f"task:{again}:work:{entry}"], timeout=PATIENCE_S)
    assert json.loads(answer[1]) == {"status": "gone"}
    assert server.ended(again)["output"] == {"n": 7}


def test_a_signal_about_a_run_that_was_cancelled_changes_nothing(server: Server) -> None:
    run = server.submit(ONE)
    server.read("reader")
    server.call("POST", f"/v1/runs/{run}/cancel", {})
    before = server.ended(run)
    server.push({"run_id": run, "node_id": "work", "output": 1})
    until(lambda: "outcome=\"stale\"" in urllib.request.urlopen(server.url + "/metrics").read().decode())
    assert server.call("GET", f"/v1/runs/{run}") == before
    assert server.letters() == []


def test_the_process_that_moves_signals_is_killed(server: Server) -> None:
    runs = [server.submit(ONE) for _ in range(100)]
    for _ in runs:
        server.read("reader")
    pushed = [json.dumps({"run_id": run, "node_id": "work", "output": run}) for run in runs]
    server.connection.rpush("completion_signals", *pushed)
    server.kill()
    server.start()
    for run in runs:
        view = server.ended(run)
        assert (view["status"], view["output"]) == ("succeeded", run), view
    assert server.letters() == []
