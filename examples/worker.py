#!/usr/bin/env python3
"""A Switchyard worker in Python, with the standard library alone.

    switchyard up                                   # in one terminal
    python3 examples/worker.py                      # in another
    curl http://127.0.0.1:7070/v1/runs -H 'content-type: application/json' -d '{
      "workflow": {"name": "greet", "nodes": {
        "greet": {"type": "function", "function": "greet", "input": {"name": "${{ input.name }}"}}}},
      "input": {"name": "Ada"}}'

A handler is a function from input to output. It can be called twice for the same attempt (the worker may die
after the effect and before its result was recorded): pass `task["idempotency_key"]` on to the system that must not see an effect
twice. While it runs, heartbeats keep the task; a worker that goes silent loses it to another.
"""

import json
import os
import signal
import sys
import threading
import time
import urllib.error
import urllib.request

SERVER = os.environ.get("SWITCHYARD_URL", "http://127.0.0.1:7070")
NAME = f"python-{os.getpid()}"
LEASE_SECONDS = 30


class Permanent(Exception):
    """A failure that will come back: no retry."""


def greet(task):
    name = task["input"]["name"]
    if not isinstance(name, str):
        raise Permanent("`name` must be text")
    return {"greeting": f"Hello, {name}!"}


def add(task):
    return sum(task["input"]["numbers"])


HANDLERS = {"greet": greet, "add": add}


def post(path, body, timeout=90):
    request = urllib.request.Request(
        SERVER + path, json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=timeout) as response:
        return json.load(response)


def about(task, **more):
    return {"run_id": task["run_id"], "node": task["node"], "claim": task["claim"], **more}


def keep(task, done):
    """Heartbeats until the task is done; a third of the lease leaves room for two that fail."""
    while not done.wait(LEASE_SECONDS / 3):
        try:
            post("/v1/tasks/heartbeat", about(task, lease=f"{LEASE_SECONDS}s"))
        except urllib.error.HTTPError as error:
            if error.code == 409:
                return  # Taken back: its result will not count.
        except OSError:
            pass  # The server may be back before the lease has run out.


def call(task):
    """What became of the task: which address to tell, and what."""
    handler = HANDLERS.get(task["function"])
    if handler is None:
        message = f"no function `{task['function']}` here; there are {', '.join(sorted(HANDLERS))}"
        return "fail", about(task, error={"code": "unknown_function", "message": message, "retryable": False})
    try:
        return "complete", about(task, output=handler(task))
    except Permanent as error:
        return "fail", about(task, error={"code": "refused", "message": str(error), "retryable": False})
    except Exception as error:  # An exception of a handler fails its node, not the worker.
        return "fail", about(task, error={"code": type(error).__name__, "message": str(error)})


def execute(task):
    done = threading.Event()
    keeper = threading.Thread(target=keep, args=(task, done), daemon=True)
    keeper.start()
    try:
        verb, body = call(task)
    finally:
        done.set()
        keeper.join()
    try:
        post(f"/v1/tasks/{verb}", body)
    except urllib.error.HTTPError as error:
        problem = json.load(error)
        print(f"{task['idempotency_key']}: {problem['code']}: {problem['detail']}", file=sys.stderr)


def work():
    claim = {"worker": NAME, "types": ["function"], "slots": 1, "wait": "30s", "lease": f"{LEASE_SECONDS}s"}
    while True:
        try:
            tasks = post("/v1/tasks/claim", claim)["tasks"]
        except OSError as error:  # HTTPError is one of them.
            print(f"{SERVER}: {error}", file=sys.stderr)
            time.sleep(1)
            continue
        for task in tasks:
            execute(task)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        work()
    except KeyboardInterrupt:
        pass
