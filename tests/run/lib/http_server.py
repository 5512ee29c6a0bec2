#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""http_server.py DIR [CERT KEY [CLIENT_CA]]: a server that takes profiles, or does what the path says.

Listens on 127.0.0.1, prints its port and serves until it is killed or its stdin ends. DIR/log has a
JSON line for each request (connection, who the client's certificate is of, method, path, headers); a body that
arrived whole is DIR/N.pb.gz, N the number of the request, from 1. With CERT and KEY it speaks TLS,
with CLIENT_CA only to those who have a certificate of it. Paths:

    /ok                    200
    /status/N?after=X      N, with Retry-After: X
    /say/N/TEXT            N, with the body TEXT and a second line
    /type/N/TYPE/TEXT      N, with the body TEXT of that content type
    /limit/BYTES/N/TEXT    N with TEXT to requests with longer bodies, else 200 and {}
    /grpc/CODE/TEXT        200 of gRPC-web without a message: the status is in the headers
    /trailers/CODE/TEXT    200 of gRPC-web with an empty message and the status behind it
    /gzip/TEXT             200, with the body TEXT, compressed
    /flaky/N/STATUS        N times STATUS, then 200 for ever
    /hang                  takes the body and never answers
    /slow/SECONDS          answers 200 byte by byte, taking that long
    /truncated-request           resets the connection in the middle of the body
    /truncated-head, /truncated-answer/N   ends in the middle of its headers, of its body
    /huge/N                N with a body that doesn't end
    /huge-head, /continue  headers, or interim answers, that don't end
    /garbage               not HTTP
    /stale                 200, keeps the connection, and closes it a moment later
    /redirect/N?to=URL     N, Location: URL

As a proxy it does what the path says, whatever the server's name. CONNECT of refuse-N.NAME is answered by N, any other
by 200 and the end of the connection.
"""
import gzip
import json
import os
import re
import socket
import ssl
import struct
import sys
import threading
import time
import urllib.parse

LOCK = threading.Lock()


class State:
    requests = 0
    connections = 0
    flaky = {}


class Gone(Exception):
    pass


class Connection:
    def __init__(self, sock, number, folder):
        self.sock, self.number, self.folder = sock, number, folder
        self.data = b""

    def more(self):
        data = self.sock.recv(65536)
        if not data:
            raise Gone
        self.data += data

    def head(self):
        while b"\r\n\r\n" not in self.data:
            self.more()
            if self.data[0] == 0x16:  # TLS
                self.answer(400, "no TLS on this port")
                raise Gone
        head, self.data = self.data.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ")
        headers = {}
        for line in lines[1:]:
            name, value = line.split(":", 1)
            headers[name.lower()] = value.strip()
        return method, target, headers

    def body(self, length):
        while len(self.data) < length:
            self.more()
        body, self.data = self.data[:length], self.data[length:]
        return body

    def send(self, text):
        self.sock.sendall(text if isinstance(text, bytes) else text.encode("latin-1"))

    def answer(self, status, body="", **headers):
        lines = [f"HTTP/1.1 {status} Some Words", f"Content-Length: {len(body)}"]
        lines += [f"{k.replace('_', '-')}: {v}" for k, v in headers.items() if v is not None]
        self.send("\r\n".join(lines) + "\r\n\r\n" + body)

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise Gone

    def client(self):
        subject = (self.sock.getpeercert() or {}).get("subject", ()) if isinstance(self.sock, ssl.SSLSocket) else ()
        return dict(field[0] for field in subject).get("commonName")

    def log(self, method, target, headers):
        with LOCK:
            State.requests += 1
            number = State.requests
            with open(os.path.join(self.folder, "log"), "a", encoding="utf-8") as f:
                f.write(json.dumps({"n": number, "connection": self.number, "client": self.client(), "method": method,
                                    "path": target, "headers": headers}) + "\n")
        return number

    def one(self):
        method, target, headers = self.head()
        number = self.log(method, target, headers)
        url = urllib.parse.urlsplit(target)
        path = [urllib.parse.unquote(p) for p in url.path.split("/")[1:]]
        if method == "CONNECT":
            self.connect(target)
        length = int(headers.get("content-length", "0"))
        if path[0] == "truncated-request":
            self.body(min(length, 1000))
            self.reset()
        body = self.body(length)
        name = os.path.join(self.folder, f"{number}.pb.gz")
        with open(name + ".part", "wb") as f:
            f.write(body)
        os.rename(name + ".part", name)
        self.do(path, dict(urllib.parse.parse_qsl(url.query)), length)

    def connect(self, target):
        refused = re.match(r"refuse-(\d+)\.", target)
        self.answer(int(refused.group(1)) if refused else 200)
        raise Gone

    def do(self, path, query, length):
        what, rest = path[0], path[1:]
        if what == "status":
            self.answer(int(rest[0]), Retry_After=query.get("after"))
        elif what == "say":
            self.answer(int(rest[0]), rest[1] + "\nand a second line\n")
        elif what == "type":
            self.answer(int(rest[0]), rest[2], Content_Type=rest[1])
        elif what == "limit":
            over = length > int(rest[0])
            self.answer(int(rest[1]) if over else 200, rest[2] if over else "{}")
        elif what == "grpc":
            self.answer(200, Content_Type="application/grpc-web+proto", Grpc_Status=rest[0], Grpc_Message=rest[1])
        elif what == "trailers":
            lines = f"grpc-status: {rest[0]}\r\ngrpc-message: {rest[1]}\r\n"
            self.answer(200, "\0\0\0\0\0\x80\0\0\0" + chr(len(lines)) + lines, Content_Type="application/grpc-web+proto")
        elif what == "gzip":
            self.answer(200, gzip.compress(rest[0].encode()).decode("latin-1"), Content_Encoding="gzip")
        elif what == "flaky":
            with LOCK:
                State.flaky[rest[0]] = State.flaky.get(rest[0], 0) + 1
                over = State.flaky[rest[0]] > int(rest[0])
            self.answer(200 if over else int(rest[1]))
        elif what == "redirect":
            self.answer(int(rest[0]), Location=query.get("to"))
        elif what == "stale":
            self.answer(200)
            time.sleep(0.2)
            raise Gone
        elif what in ("hang", "slow", "truncated-head", "truncated-answer", "huge", "huge-head", "continue",
                      "garbage"):
            self.misbehave(what, rest)
        else:
            self.answer(200)

    def misbehave(self, what, rest):
        if what == "hang":
            while self.sock.recv(65536):
                pass
        elif what == "slow":
            text = b"HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n" + b"x" * 30
            for i in range(len(text)):
                time.sleep(float(rest[0]) / len(text))
                self.send(text[i:i + 1])
            return
        elif what == "truncated-head":
            self.send("HTTP/1.1 200 OK\r\nContent-Le")
        elif what == "truncated-answer":
            self.send(f"HTTP/1.1 {rest[0]} X\r\nContent-Length: 100000\r\n\r\nthe first line\nmor")
        elif what == "huge":
            self.send(f"HTTP/1.1 {rest[0]} X\r\n\r\na line\n")
            while True:
                self.send(b"x" * 65536)
        elif what == "huge-head":
            self.send("HTTP/1.1 200 OK\r\n")
            while True:
                self.send("X-Filler: " + "x" * 1000 + "\r\n")
        elif what == "continue":
            while True:
                self.send("HTTP/1.1 100 Continue\r\nX-Filler: " + "x" * 1000 + "\r\n\r\n")
        elif what == "garbage":
            self.send("SSH-2.0-OpenSSH_9.2p1\r\n")
        raise Gone

    def serve(self):
        try:
            while True:
                self.one()
        except (Gone, OSError, ValueError):
            pass
        finally:
            self.sock.close()


def accept(sock, context, folder):
    with LOCK:
        State.connections += 1
        number = State.connections
    try:
        if context:
            sock.settimeout(20)
            sock = context.wrap_socket(sock, server_side=True)
            sock.settimeout(None)
    except OSError:
        sock.close()
        return
    Connection(sock, number, folder).serve()


def main():
    folder, files = sys.argv[1], sys.argv[2:]
    context = None
    if files:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files[0], files[1])
    if len(files) > 2:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(files[2])
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    while True:
        sock, _ = listener.accept()
        threading.Thread(target=accept, args=(sock, context, folder), daemon=True).start()


main()
