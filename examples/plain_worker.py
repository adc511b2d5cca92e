"""A worker for `function` nodes that needs redis-py and nothing of Switchyard's. docs/guide/plain-workers.md explains it.

    REDIS_URL=redis://127.0.0.1:6379 python3 plain_worker.py
"""

import json
import os

import redis

NAME = os.environ.get("WORKER_POD_NAME", f"plain-{os.getpid()}")
STREAMS = ["wf.high.function", "wf.tasks.function", "wf.low.function"]


def greet(name):
    return {"greeting": f"Hello, {name}!"}


def add(a, b):
    return a + b


FUNCTIONS = {"greet": greet, "add": add}


def signal(connection, about, **what):
    connection.rpush("completion_signals", json.dumps({**about, **what}))


def serve(connection):
    for stream in STREAMS:
        try:
            connection.xgroup_create(stream, "workers", id="0", mkstream=True)
        except redis.ResponseError:
            pass  # it is there already
    while True:
        found = connection.xreadgroup("workers", NAME, dict.fromkeys(STREAMS, ">"), count=1, block=5000)
        for _, entries in found or []:
            for entry_id, fields in entries:
                about = {"run_id": fields["run_id"], "node_id": fields["node_id"], "entry_id": entry_id}
                work(connection, {**about, "worker": NAME})


def work(connection, about):
    signal(connection, about, status="started")
    answer = connection.blpop(["task:{run_id}:{node_id}:{entry_id}".format(**about)], timeout=30)
    task = json.loads(answer[1]) if answer else {"status": "gone"}
    if task["status"] != "claimed":
        return  # skipped, done by another worker, or its run has ended
    about["claim"] = task["claim"]
    try:
        output = FUNCTIONS[task["function"]](**task["input"])
    except Exception as error:
        signal(connection, about, status="failed", error=repr(error))
    else:
        signal(connection, about, status="completed", output=output)


if __name__ == "__main__":
    serve(redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True, protocol=2))
