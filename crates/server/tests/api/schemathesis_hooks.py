"""What schemathesis must not do to the server under test."""

import schemathesis


@schemathesis.hook
def before_call(context, case, kwargs):
    # A claim waits for work, up to a minute, and there is none.
    if case.path == "/v1/tasks/claim" and isinstance(case.body, dict):
        case.body["wait"] = "0ms"
