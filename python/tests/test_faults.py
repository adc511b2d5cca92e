"""Redis is killed and started again while 50 threads write: nothing acknowledged is lost, nothing is half."""

from __future__ import annotations

import threading
from typing import Any

from langgraph.checkpoint.conformance.test_utils import (
    generate_checkpoint,
    generate_config,
    generate_metadata,
)
from servers import Redis

from switchyard import CheckpointerError, RedisSaver

WRITERS = 50
RESTARTS = 3
CHANNELS = 10


class Writer(threading.Thread):
    def __init__(self, saver: RedisSaver, number: int, stop: threading.Event) -> None:
        super().__init__()
        self.saver, self.number, self.stop = saver, number, stop
        self.acknowledged: list[str] = []
        self.written: list[str] = []
        self.errors: list[BaseException] = []

    def run(self) -> None:
        count = 0
        while not self.stop.is_set():
            id = f"{count:06}"
            values = {f"c{name}": [self.number, count] for name in range(CHANNELS)}
            versions: Any = dict.fromkeys(values, count)
            checkpoint = generate_checkpoint(checkpoint_id=id, channel_values=values, channel_versions=versions)
            config = generate_config(f"t{self.number}")
            try:
                stored = self.saver.put(config, checkpoint, generate_metadata(step=count), versions)
                self.acknowledged.append(id)
                self.saver.put_writes(stored, [("c", count)], "task")
                self.written.append(id)
            except BaseException as error:
                self.errors.append(error)
            count += 1


def test_redis_restarts_while_fifty_threads_write() -> None:
    server = Redis("--appendonly", "yes", "--appendfsync", "always")
    try:
        saver = RedisSaver.from_url(server.url)
        stop = threading.Event()
        writers = [Writer(saver, number, stop) for number in range(WRITERS)]
        for writer in writers:
            writer.start()
        for _ in range(RESTARTS):
            goal = sum(len(writer.acknowledged) for writer in writers) + 4 * WRITERS
            while sum(len(writer.acknowledged) for writer in writers) < goal:
                stop.wait(0.01)
            server.kill()
            server.start()
        stop.set()
        for writer in writers:
            writer.join()
        for writer in writers:
            # Only clear errors, and only while Redis was away.
            assert all(isinstance(error, CheckpointerError) for error in writer.errors), writer.errors
            found = {each.checkpoint["id"]: each for each in saver.list(generate_config(f"t{writer.number}"))}
            assert set(writer.acknowledged) <= set(found)
            for id, each in found.items():
                expected = {f"c{name}": [writer.number, int(id)] for name in range(CHANNELS)}
                assert each.checkpoint["channel_values"] == expected
            assert all(found[id].pending_writes == [("task", "c", int(id))] for id in writer.written)
    finally:
        server.stop()
