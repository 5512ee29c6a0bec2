# SPDX-License-Identifier: Apache-2.0
"""What became of the ticks of a running recorder, over time: its map sampler_counts, read again and again."""

import ctypes
import os
import re
import struct
import threading
import time

BPF, LOOKUP, MAP_OF_ID, INFO = 321, 1, 14, 15  # the system call of x86-64, and its commands
HEADER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../bpf/maps.h")
NO_SAMPLE = ("not selected", "idle", "ring full", "continued", "labeled", "label unreadable", "label incomplete", "label lost")
BEGIN = 1.0  # seconds


def results():
    """The texts of enum tick_result, in order."""
    with open(HEADER) as f:
        text = f.read()
    return re.findall(r'X\(TICK_\w+, "([^"]+)"\)', text[text.index("#define TICK_RESULTS"):])


def bpf(command, attr):
    room = ctypes.create_string_buffer(attr, 128)
    return ctypes.CDLL(None, use_errno=True).syscall(BPF, command, room, 128)


def map_of(pid, name):
    """A descriptor of the process's map of this name; -1: it has none yet."""
    for fd in os.listdir("/proc/%d/fdinfo" % pid):
        try:
            with open("/proc/%d/fdinfo/%s" % (pid, fd)) as f:
                found = re.search(r"^map_id:\s+(\d+)", f.read(), re.M)
        except OSError:
            continue
        got = bpf(MAP_OF_ID, struct.pack("=I", int(found.group(1)))) if found else -1
        if got < 0:
            continue
        info = ctypes.create_string_buffer(256)
        if not bpf(INFO, struct.pack("=IIQ", got, len(info), ctypes.addressof(info))):
            if info.raw[24:40].rstrip(b"\0") == name.encode()[:15]:
                return got
        os.close(got)
    return -1


def cpus():
    """How many CPUs are possible."""
    with open("/sys/devices/system/cpu/possible") as f:
        return int(re.split(r"[-,]", f.read().strip())[-1]) + 1


class Ticks(threading.Thread):
    """Reads the map until the process ends. Each of self.series is (seconds, {what: how many so far}), from the first sample on."""

    def __init__(self, pid, every=0.02):
        super().__init__(daemon=True)
        self.pid, self.every, self.series = pid, every, []
        self.names, self.cpus = results(), cpus()

    def read(self, fd):
        sums, values = {}, ctypes.create_string_buffer(8 * self.cpus)
        for i, name in enumerate(self.names):
            key = ctypes.c_uint32(i)
            if bpf(LOOKUP, struct.pack("=IIQQQ", fd, 0, ctypes.addressof(key), ctypes.addressof(values), 0)):
                return None
            if name not in NO_SAMPLE:
                sums[name] = sum(struct.unpack("=%dQ" % self.cpus, values.raw))
        return sums

    def run(self):
        fd, first = -1, None
        try:
            while os.path.exists("/proc/%d/fdinfo" % self.pid):
                fd = fd if fd >= 0 else map_of(self.pid, "sampler_counts")
                sums = self.read(fd) if fd >= 0 else None
                if sums and any(sums.values()):
                    first = first or time.monotonic()
                    self.series.append((time.monotonic() - first, sums))
                time.sleep(self.every)
        except OSError:
            pass  # it has ended
        if fd >= 0:
            os.close(fd)

    def behind_begin(self, last):
        """Of the ticks behind the first second: {what: how many}. last: the recorder's own sums."""
        before = next((sums for at, sums in self.series if at >= BEGIN), None)
        return {name: last[name] - n for name, n in before.items()} if before else {}
