# SPDX-License-Identifier: Apache-2.0
"""How fast this machine is now, so that deadlines fit it."""
import hashlib
import time

REFERENCE = 0.005  # seconds of a round on a quiet machine with two CPUs
ROUNDS = 40
MOST = 10
BLOCK = bytes(1 << 16)


def round_seconds():
    """One round: work in C and in Python. Time of the clock, so that waiting for a CPU counts."""
    start = time.monotonic()
    for _ in range(60):
        hashlib.sha256(BLOCK).digest()
    sum(i * i for i in range(40000))
    return time.monotonic() - start


def slowness():
    """1: as fast as the reference, or faster; 3: three times as slow. Deadlines are multiplied by it."""
    took = sum(round_seconds() for _ in range(ROUNDS)) / ROUNDS
    return min(max(took / REFERENCE, 1.0), MOST)
