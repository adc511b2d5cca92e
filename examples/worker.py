#!/usr/bin/env python3
"""A Switchyard worker in Python, with the standard library alone. docs/guide/http-workers.md explains the protocol.

    switchyard up                                   # in one terminal
    python3 examples/worker.py                      # in another
    curl http://127.0.0.1:7070/v1/runs -H 'content-type: application/json' -d '{
      "workflow": {"name": "greet", "nodes": {
        "greet": {"type": "function", "function": "greet", "input": {"name": "${{ input.name }}"}}}},
      "input": {"name": "Ada"}}'

It gets the functions in HANDLERS and no others. A handler can be called twice for the same attempt: pass
`task["idempotency_key"]` on to the system that must not see an effect twice. On SIGTERM it claims no further task, handlers
may finish for GRACE_SECONDS, and the rest is released.
"""

import json, os, signal, sys, threading, time, urllib.request

SERVER = os.environ.get("SWITCHYARD_URL", "http://127.0.0.1:7070")
API_KEY = os.environ.get("SWITCHYARD_API_KEY")
NAME = f"python-{os.uname().nodename}-{os.getpid()}"
SLOTS, LEASE_SECONDS, GRACE_SECONDS = 4, 30, 10
stopping = threading.Event()


class Permanent(Exception):
    """A failure that will come back: no retry."""

def greet(task, stop):
    if not isinstance(task["input"]["name"], str):
        raise Permanent("`name` must be text")
    return {"greeting": f"Hello, {task['input']['name']}!"}


def add(task, stop):
    return sum(task["input"]["numbers"])


def nap(task, stop):
    stop.wait(task["input"]["seconds"])  # Long work looks at `stop`: the run is cancelled, or this worker ends.


HANDLERS = {"greet": greet, "add": add, "nap": nap}


def post(path, body):
    headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {API_KEY}"} if API_KEY else {})
    request = urllib.request.Request(SERVER + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=90) as response:
        return json.load(response)


def about(task, **more):
    return {"run_id": task["run_id"], "node": task["node"], "claim": task["claim"], **more}


def keep(task, done, stop):
    """Heartbeats until the task is done; a third of the lease leaves room for two that fail."""
    while not done.wait(LEASE_SECONDS / 3):
        try:
            if post("/v1/tasks/heartbeat", about(task, lease=f"{LEASE_SECONDS}s"))["standing"] == "stop":
                stop.set()  # The run is being cancelled.
        except OSError as error:  # A server that is away may be back before the lease has run out.
            if getattr(error, "code", None) == 409:  # Taken back: the result will not count.
                return stop.set()


def call(task, stop):
    """What became of the task: which address to tell, and what."""
    try:
        output = HANDLERS[task["function"]](task, stop)
    except Permanent as error:
        return "fail", about(task, error={"code": "refused", "message": str(error), "retryable": False})
    except Exception as error:  # An exception of a handler fails its attempt, not the worker.
        return "fail", about(task, error={"code": type(error).__name__, "message": str(error)})
    return ("release", about(task)) if stop.is_set() else ("complete", about(task, output=output))


def execute(task, stop, free):
    done = threading.Event()
    threading.Thread(target=keep, args=(task, done, stop), daemon=True).start()
    verb, body = call(task, stop)
    done.set()
    try:
        post(f"/v1/tasks/{verb}", body)
    except OSError as error:  # Too late, or the server is away: another worker gets it when the lease has run out.
        print(f"{task['idempotency_key']}: {error}", file=sys.stderr)
    free.release()


def work():
    """Claims one task for each free slot, until it is told to stop. The tasks that are still under way then."""
    free, under_way = threading.Semaphore(SLOTS), []
    claim = {"worker": NAME, "functions": sorted(HANDLERS), "wait": "5s", "lease": f"{LEASE_SECONDS}s"}
    while not stopping.is_set():
        if not free.acquire(timeout=1):
            continue
        try:
            tasks = post("/v1/tasks/claim", claim)["tasks"]
        except OSError as error:  # HTTPError is one of them.
            print(f"{SERVER}: {error}", file=sys.stderr)
            tasks = []
            stopping.wait(1)
        for task in tasks:
            stop = threading.Event()
            thread = threading.Thread(target=execute, args=(task, stop, free))
            thread.start()
            under_way = [one for one in under_way if one[0].is_alive()] + [(thread, stop)]
        if not tasks:
            free.release()
    return under_way


if __name__ == "__main__":
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    left, until = work(), time.monotonic() + GRACE_SECONDS
    for thread, stop in left:
        thread.join(max(0, until - time.monotonic()))
        stop.set()  # Its own thread releases it, and the process ends when all threads have.
