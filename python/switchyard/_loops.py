"""The way of results into event loops: one bridge for each loop, as long as the loop lives."""

from __future__ import annotations

import asyncio
import os
from weakref import WeakKeyDictionary

from switchyard._core import Bridge

_bridges: WeakKeyDictionary[asyncio.AbstractEventLoop, Bridge] = WeakKeyDictionary()

# A forked child watches sockets of its own.
os.register_at_fork(after_in_child=_bridges.clear)


def bridge_into(loop: asyncio.AbstractEventLoop) -> Bridge:
    bridge = _bridges.get(loop)
    if bridge is None:
        bridge = Bridge()
        loop.add_reader(bridge.fileno(), bridge.drain, loop)
        _bridges[loop] = bridge
    return bridge
