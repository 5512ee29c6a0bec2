# SPDX-License-Identifier: Apache-2.0
"""A server of the standard library alone: two forked workers accept on one socket, as gunicorn's do. server.py PORT"""
import json
import os
import signal
import sqlite3
import string
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

ROW = string.Template("<tr><td>$name</td><td>$value</td></tr>")


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):  # noqa: N802
        body = self.page() if self.path == "/page" else self.data()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def page(self):
        return "".join(ROW.substitute(name="row %d" % i, value=i * i) for i in range(200)).encode()

    def data(self):
        db = sqlite3.connect(":memory:")
        db.create_function("twice", 1, lambda x: x * 2)
        db.execute("create table t(a integer, b text)")
        db.executemany("insert into t values(?, ?)", ((i, str(i)) for i in range(100)))
        rows = db.execute("select twice(a), b from t order by b").fetchall()
        db.close()
        return json.dumps(sorted(rows, key=lambda r: r[0] % 7)).encode()

    def log_message(self, *args):
        pass


def stop(*_):
    raise SystemExit


def main():
    signal.signal(signal.SIGTERM, stop)
    server = HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    children = []
    for _ in range(2):
        pid = os.fork()
        if not pid:
            try:
                server.serve_forever()
            except SystemExit:
                os._exit(0)
        children.append(pid)
    try:
        os.wait()
    except SystemExit:
        for c in children:
            os.kill(c, signal.SIGTERM)
            os.waitpid(c, 0)


main()
