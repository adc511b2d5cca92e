"""Real servers for the tests: on free ports, in folders of their own, stopped by process id."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

# Far beyond what anything takes: it only turns a hang into a failure.
PATIENCE_S = 60.0

# Another server that speaks the same language, as for the tests in Rust.
PROGRAM = os.environ.get("SWITCHYARD_TEST_REDIS", "redis-server")


def free_port() -> int:
    # A cluster node also listens on its port + 10000.
    for _ in range(100):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        if port + 10000 < 65536:
            return port
        with socket.socket() as probe:
            port = port - 20000
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise RuntimeError("no free port")


class Redis:
    """A server of the test's own. `options` are its command line."""

    def __init__(self, *options: str, folder: Path | None = None, port: int | None = None) -> None:
        self.folder = folder or Path(tempfile.mkdtemp(prefix="switchyard-redis-"))
        self.port = port or free_port()
        self.options = options
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def client(self, **options: object) -> redis.Redis:
        return redis.Redis(port=self.port, **options)  # type: ignore[arg-type]

    def start(self) -> None:
        command = [PROGRAM, "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        log = open(self.folder / "log", "ab")
        self.process = subprocess.Popen(
            [*command, "--dir", str(self.folder), *self.options], stdout=log, stderr=log
        )
        log.close()
        self.wait()

    def wait(self) -> None:
        assert self.process is not None
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                    connection.sendall(b"PING\r\n")
                    answer = connection.recv(64)
                if answer and not answer.startswith(b"-LOADING"):
                    return
            except OSError:
                pass
            assert self.process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < until, f"{PROGRAM} does not answer"
            time.sleep(0.02)

    def kill(self) -> None:
        """As a crash would."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    @contextmanager
    def halted(self) -> Iterator[None]:
        """Connections stay, and nothing answers."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.process.pid, signal.SIGCONT)

    def stop(self) -> None:
        assert self.process is not None
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Cluster:
    """Three nodes, each with a third of the slots."""

    def __init__(self) -> None:
        self.nodes = [Redis("--cluster-enabled", "yes") for _ in range(3)]
        addresses = [f"127.0.0.1:{node.port}" for node in self.nodes]
        subprocess.run(
            ["redis-cli", "--cluster", "create", *addresses, "--cluster-yes"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        until = time.monotonic() + PATIENCE_S
        while not all(self.is_ready(node) for node in self.nodes):
            assert time.monotonic() < until, "the cluster does not come up"
            time.sleep(0.05)

    @staticmethod
    def is_ready(node: Redis) -> bool:
        with node.client() as client:
            info = client.execute_command("CLUSTER INFO")
        return info["cluster_state"] == "ok" and info["cluster_known_nodes"] == "3"

    @property
    def url(self) -> str:
        return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()
