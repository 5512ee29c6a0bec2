# SPDX-License-Identifier: Apache-2.0
"""Writes down which Python function called which, by sys.setprofile(), into a file of the folder FUSEE_EDGES: one for each process,
written when it ends."""
import os
import sys

edges = set()
GENERATOR = 0x20 | 0x80 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR


def on_event(frame, event, arg):
    if event == "call":
        back = frame.f_back
        edges.add((back and back.f_code, frame.f_code))


if os.environ.get("FUSEE_EDGES"):
    sys.setprofile(on_event)  # before anything else is loaded

import atexit  # noqa: E402
import json  # noqa: E402
import threading  # noqa: E402


def name(code):
    return getattr(code, "co_qualname", code.co_name), code.co_filename, code.co_firstlineno


def write():
    sys.setprofile(None)
    path = os.path.join(os.environ["FUSEE_EDGES"], "%d.json" % os.getpid())
    with open(path + ".new", "w") as f:
        json.dump([(a and name(a), name(b), bool(b.co_flags & GENERATOR)) for a, b in list(edges)], f)
    os.rename(path + ".new", path)


if os.environ.get("FUSEE_EDGES"):
    atexit.register(write)
    threading.setprofile(on_event)
    exit_now = os._exit

    def exit_(status):
        write()
        exit_now(status)

    os._exit = exit_
