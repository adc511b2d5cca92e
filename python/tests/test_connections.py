"""Every way to Redis: TLS, ACL users, Unix sockets, sentinels, a node of a cluster."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.conformance.test_utils import (
    generate_checkpoint,
    generate_config,
    generate_metadata,
)
from servers import PROGRAM, Cluster, Redis, free_port

from switchyard import RedisSaver, Refused, Unavailable


async def works(url: str) -> None:
    async with RedisSaver.from_url(url) as saver:
        await saver.asetup()
        saver.setup()
        stored = saver.put(generate_config("t"), generate_checkpoint(), generate_metadata(), {})
        assert await saver.aget_tuple(stored) is not None
        saver.copy_thread("t", "u")
        saver.delete_thread("u")


async def test_a_unix_socket(tmp_path: Path) -> None:
    server = Redis("--unixsocket", str(tmp_path / "redis.sock"))
    try:
        await works(f"unix://{tmp_path}/redis.sock")
        await works(f"redis+unix://{tmp_path}/redis.sock?db=1")
    finally:
        server.stop()


async def test_an_acl_user_needs_few_rights(tmp_path: Path) -> None:
    users = tmp_path / "users.acl"
    rights = "-@all +@read +@write +@scripting +@connection +time"
    users.write_text(f"user default off\nuser ada on >p@ss ~lg:* {rights}\n")
    server = Redis("--aclfile", str(users))
    try:
        await works(f"redis://ada:p%40ss@127.0.0.1:{server.port}")
        with pytest.raises((Refused, Unavailable), match="redis at redis://127.0.0.1") as refused:
            await works(f"redis://ada:wrong@127.0.0.1:{server.port}")
        assert "wrong" not in str(refused.value)
    finally:
        server.stop()


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=tmp_path, check=True, capture_output=True)

    openssl(
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-days", "2",
        "-subj", "/CN=test", "-addext", "basicConstraints=critical,CA:TRUE",
    )  # fmt: skip
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "req.pem", "-subj", "/CN=localhost")
    (tmp_path / "ext").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    openssl(
        "x509", "-req", "-in", "req.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
        "-out", "cert.pem", "-days", "2", "-extfile", "ext",
    )  # fmt: skip
    return tmp_path


async def test_tls(certificates: Path) -> None:
    port = free_port()
    files = [f"{certificates}/{name}.pem" for name in ("cert", "key", "ca")]
    server = Redis(
        "--tls-port", str(port), "--tls-cert-file", files[0], "--tls-key-file", files[1],
        "--tls-ca-cert-file", files[2], "--tls-auth-clients", "yes",
    )  # fmt: skip
    try:
        own = f"ssl_certfile={files[0]}&ssl_keyfile={files[1]}"
        await works(f"rediss://localhost:{port}?ssl_ca_certs={files[2]}&{own}")
        # An authority that is not known, and a client that does not show who it is.
        with pytest.raises(Unavailable):
            await works(f"rediss://localhost:{port}?{own}")
        with pytest.raises((Unavailable, Refused)):
            await works(f"rediss://localhost:{port}?ssl_ca_certs={files[2]}")
    finally:
        server.stop()


async def test_sentinels_name_the_master(tmp_path: Path) -> None:
    master = Redis()
    config = tmp_path / "sentinel.conf"
    config.write_text(f"sentinel monitor main 127.0.0.1 {master.port} 1\n")
    sentinel = Sentinel(config)
    try:
        await works(f"redis+sentinel://127.0.0.1:1,127.0.0.1:{sentinel.port}/main/0")
        with pytest.raises(Unavailable):
            await works(f"redis+sentinel://127.0.0.1:{sentinel.port}/other")
    finally:
        sentinel.stop()
        master.stop()


class Sentinel(Redis):
    def __init__(self, config: Path) -> None:
        self.config = config
        super().__init__()

    def start(self) -> None:
        command: list[str] = [PROGRAM, str(self.config), "--sentinel", "--port", str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait()


async def test_any_node_of_a_cluster_leads_into_it(cluster: Cluster) -> None:
    for node in cluster.nodes:
        await works(node.url)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("localhost:6379", "must begin with"),
        ("http://localhost", "must begin with"),
        ("redis+sentinel://localhost", "does not name a service"),
        ("rediss://h?ssl_ca_certs=/nowhere", "cannot read `/nowhere`"),
    ],
)
def test_a_url_that_is_none(url: str, reason: Any) -> None:
    with pytest.raises(ValueError, match=reason):
        RedisSaver.from_url(url)


def test_an_empty_namespace_is_refused() -> None:
    with pytest.raises(ValueError, match="namespace is empty"):
        RedisSaver.from_url("redis://localhost", namespace="")
