#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""health.py PORT PID: requests /healthz of the agent PID 20 times a second, and prints a line for each answer:

    TIME SECONDS WAITED

TIME of CLOCK_MONOTONIC, SECONDS until the answer (10: none), and for how many of them the agent's control thread could
run, but had no CPU. A process of its own, ahead of all others where it may be: what it waits for itself is no fault of
the agent."""
import os
import socket
import sys
import time

PORT, PID = int(sys.argv[1]), int(sys.argv[2])
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def run_delay():
    """Seconds that the control thread has waited for a CPU so far."""
    try:
        with open("/proc/%d/task/%d/schedstat" % (PID, PID)) as f:
            return int(f.read().split()[1]) / 1e9
    except OSError:
        return 0.0


def ask():
    try:
        with socket.create_connection(("127.0.0.1", PORT), timeout=10) as s:
            s.sendall(REQUEST)
            return s.recv(65536).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def main():
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        try:
            os.nice(-20)
        except OSError:
            pass
    while True:
        waited, start = run_delay(), time.monotonic()
        good = ask()
        took = time.monotonic() - start if good else 10.0
        print("%.6f %.6f %.6f" % (start, took, run_delay() - waited), flush=True)
        time.sleep(0.05)


main()
