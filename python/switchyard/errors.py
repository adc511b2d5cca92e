"""What can go wrong with Redis. What is wrong with an argument is a `ValueError`."""


class CheckpointerError(Exception):
    """Something went wrong with the checkpoints in Redis."""


class Unavailable(CheckpointerError):
    """Redis did not answer. Nothing is known of the call; repeating it is safe."""


class Refused(CheckpointerError):
    """Redis answered with an error: a wrong password, no memory, no permission."""


class UnknownFormat(CheckpointerError):
    """The thread was written by a newer release."""


class Corrupted(CheckpointerError):
    """What is stored cannot be read."""
