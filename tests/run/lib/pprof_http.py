#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pprof_http.py GO FILE: the web pages of `go tool pprof -http` over one profile."""
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from evidence import within  # noqa: E402

PAGES = ["/ui/top", "/ui/flamegraph", "/ui/peek?f=.", "/ui/source?f=nothing_has_this_name"]
SECONDS = 60


def get(url, server, end):
    """The page; the server says where it will be before it is there."""
    while True:
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return answer.status, answer.read().decode("utf-8", "replace")
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode("utf-8", "replace")
        except (urllib.error.URLError, ConnectionError):
            if server.poll() is not None or time.monotonic() > end:
                return 0, "no answer"
            time.sleep(0.02)


def check(url, server):
    end = time.monotonic() + within(SECONDS)
    for page in PAGES:
        status, text = get(url + page, server, end)
        if status == 200 and ("<html" in text or "<!DOCTYPE" in text):
            continue
        # where nothing matches there is nothing to list
        if "no matches found" in text or "no source" in text:
            continue
        return "%s: %d %s" % (page, status, text[:300])
    return None


def main(go, path):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        address = "127.0.0.1:%d" % s.getsockname()[1]
    server = subprocess.Popen([go, "tool", "pprof", "-symbolize=none", "-no_browser",
                               "-http=" + address, path], start_new_session=True)
    try:
        failed = check("http://" + address, server)
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()
    return failed


sys.exit(main(*sys.argv[1:]))
