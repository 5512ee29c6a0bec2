#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clickhouse_http.py DIR [chdb]: ClickHouse's HTTP interface, as far as sink.clickhouse and tests need it.

Listens on 127.0.0.1, prints its port and serves until it is killed or its stdin ends. With `chdb` the engine of a current ClickHouse,
in this process, does what statements say. Without it answers are files in DIR: `samples` and `stacks` are the lines "name<tab>type" of
the tables that there are, CREATE makes them of new-samples and new-stacks, and `answers` has a line "STATUS BODY" for each INSERT, "*" or
no more lines: 200. `truncate` is "BYTES TEXT": the next answer to a statement with that text ends behind so many bytes. DIR/log has a JSON line for each request; the body of request N, from 1, is DIR/N.body, uncompressed."""
import gzip
import http.server
import json
import os
import re
import shutil
import sys
import threading
import urllib.parse


class Canned:
    def __init__(self, folder):
        self.folder = folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, name, default=""):
        try:
            with open(self.path(name)) as f:
                return f.read()
        except FileNotFoundError:
            return default

    def select(self, statement):
        if "version()" in statement:
            return 200, self.read("version", "26.9.2.1\n")
        if statement.startswith("CREATE"):
            table = re.search(r"`\.`(\w+)`", statement).group(1)
            shutil.copy(self.path("new-" + table), self.path(table))
            return 200, ""
        return 200, self.read(re.search(r"table = '(\w+)'", statement).group(1))

    def insert(self, statement, path):
        lines = self.read("answers").splitlines()
        with open(self.path("answers"), "w") as f:
            f.write("".join(line + "\n" for line in lines[1:]))
        if not lines or lines[0] == "*":
            return 200, ""
        status, _, body = lines[0].partition(" ")
        return int(status), body


class Chdb:
    """Statements one after another; errors as a server of this version has them."""

    def __init__(self, folder):
        from chdb import session  # not where there is no such engine
        self.session = session.Session(os.path.join(folder, "chdb"))

    def run(self, statement):
        try:
            return 200, self.session.query(statement, "TabSeparated").bytes().decode()
        except Exception as e:  # of several classes, by the version
            code = re.search(r"Code: (\d+)", str(e))
            return 404 if code and code.group(1) in ("60", "81") else 500, str(e)[str(e).find("Code: "):]

    def select(self, statement):
        return self.run(statement)

    def insert(self, statement, path):
        return self.run(re.sub(r"FORMAT (\w+)$", r"FROM INFILE '%s' FORMAT \1" % path, statement))


class Handler(http.server.BaseHTTPRequestHandler):
    number = 0

    def truncated(self, statement):
        """How many bytes of the answer's body are sent; None: all."""
        path = os.path.join(self.server.folder, "truncate")
        if os.path.exists(path):
            with open(path) as f:
                most, _, text = f.read().partition(" ")
            if text in statement:
                os.remove(path)
                return int(most)
        return None

    def do_POST(self):
        Handler.number += 1
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        path = os.path.join(self.server.folder, "%d.body" % self.number)
        with open(path, "wb") as f:
            f.write(body)
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query)).get("query")
        with open(os.path.join(self.server.folder, "log"), "a") as f:
            f.write(json.dumps({"n": self.number, "statement": query or body.decode(), "headers": {k.lower(): v for k, v in
                                                                                                  self.headers.items()}}) + "\n")
        engine = self.server.engine
        status, text = engine.insert(query, path) if query else engine.select(body.decode())
        code = re.match(r"Code: (\d+)", text)
        self.send_response(status)
        if code and "e.displayText" not in text:  # versions that say it so have no such header
            self.send_header("X-ClickHouse-Exception-Code", code.group(1))
        data = text.encode()
        most = self.truncated(query or body.decode())
        self.send_header("Content-Length", str(len(data) if most is None else max(len(data), most + 1)))
        self.end_headers()
        self.wfile.write(data[:most])

    def log_message(self, *_):
        pass


def main():
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    server.folder = os.path.abspath(sys.argv[1])
    server.engine = (Chdb if sys.argv[2:] == ["chdb"] else Canned)(server.folder)
    print(server.server_address[1], flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    server.serve_forever()


main()
