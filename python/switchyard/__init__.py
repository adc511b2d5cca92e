"""LangGraph checkpoints in Redis.

`RedisSaver` takes the place of LangGraph's `InMemorySaver`. `create_checkpointer` chooses between the two by
`CHECKPOINTER_BACKEND`. `switchyard.langgraph:checkpointer` is what a `langgraph.json` names.
"""

from switchyard.backend import create_checkpointer
from switchyard.errors import CheckpointerError, Corrupted, Refused, Unavailable, UnknownFormat
from switchyard.saver import RedisSaver

__all__ = [
    "CheckpointerError",
    "Corrupted",
    "RedisSaver",
    "Refused",
    "Unavailable",
    "UnknownFormat",
    "create_checkpointer",
]
