# SPDX-License-Identifier: Apache-2.0
"""fake_agent.py SOCKET ANSWERS: answers at a control socket from a file of lines `command<TAB>text`.

A text may begin with @: @hang says nothing, @close goes away, @raw TEXT is sent as it is, without
a newline, and then goes away. What was asked is printed, a line each."""
import os
import socket
import sys
import threading

path, answers = sys.argv[1:]
table = dict(line.rstrip("\n").split("\t", 1) for line in open(answers))


def serve(c):
    with c, c.makefile("r") as f:
        for line in f:
            command = line.rstrip("\n")
            print(command, flush=True)
            answer = table.get(command, '{"ok": false, "error": "there is no command"}')
            if answer == "@hang":
                continue
            if answer == "@close":
                return
            if answer.startswith("@raw "):
                c.sendall(answer[5:].encode())
                return
            c.sendall(answer.encode() + b"\n")


s = socket.socket(socket.AF_UNIX)
s.bind(path + ".new")
s.listen()
os.rename(path + ".new", path)
while True:
    threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
