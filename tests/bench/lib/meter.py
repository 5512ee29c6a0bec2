# SPDX-License-Identifier: Apache-2.0
"""What a tree of processes costs: CPU by the scheduler's count, memory, BPF maps and programs."""

import ctypes
import os
import re
import statistics
import struct
import sys
import threading

BPF_SYSCALL = {"x86_64": 321, "aarch64": 280}
BPF_ENABLE_STATS = 32
FIELDS = ("Size", "Rss", "Pss", "Private_Clean", "Private_Dirty")
SMAPS_HEAD = re.compile(r"^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \d+\s*(.*)$")


def spread(values, form="%.3g"):
    """median [lowest .. highest]; of one: that"""
    if not values:
        return "-"
    if len(values) == 1:
        return form % values[0]
    return (form + " [" + form + " .. " + form + "]") % (
        statistics.median(values),
        min(values),
        max(values),
    )


def verdict(what, values, most, unit, form="%.3g"):
    """Prints it beside its budget."""
    reached = values and statistics.median(values) <= most
    print(
        "  %-58s %-26s at most %g %s: %s"
        % (what, spread(values, form), most, unit, "reached" if reached else "not reached"),
        flush=True,
    )


def enable_bpf_stats():
    """Kernel counts BPF run time until this fd is closed; None: it does not let us."""
    number = BPF_SYSCALL.get(os.uname().machine)
    if number is None or sys.byteorder != "little":
        return None
    attr = ctypes.create_string_buffer(struct.pack("=I", 0), 128)
    fd = ctypes.CDLL(None, use_errno=True).syscall(number, BPF_ENABLE_STATS, attr, 128)
    return fd if fd >= 0 else None


def tree(pid):
    """pid and all below it"""
    out, todo = [], [pid]
    while todo:
        pid = todo.pop()
        try:
            for tid in os.listdir("/proc/%d/task" % pid):
                with open("/proc/%d/task/%s/children" % (pid, tid)) as f:
                    todo += [int(child) for child in f.read().split()]
            out.append(pid)
        except OSError:
            pass
    return out


def high_water(pid):
    """Highest resident bytes so far; 0: gone"""
    try:
        with open("/proc/%d/status" % pid) as f:
            found = re.search(r"VmHWM:\s+(\d+) kB", f.read())
        return int(found.group(1)) * 1024 if found else 0
    except OSError:
        return 0


def memory_of(lines):
    """Bytes, by the lines of /proc/PID/smaps: of all, without and with what is shared with the kernel's BPF maps and
    perf rings"""
    sums = dict(rss=0, pss=0, private=0, shared=0, rings=0)
    name, here = "", {}

    def add():
        if not here:
            return
        if "anon_inode" in name:
            sums["rings" if "perf_event" in name else "shared"] += (
                here["Size"] if "perf_event" in name else here["Rss"]
            )
            return
        sums["rss"] += here["Rss"]
        sums["pss"] += here["Pss"]
        sums["private"] += here["Private_Clean"] + here["Private_Dirty"]

    for line in lines:
        head = SMAPS_HEAD.match(line)
        if head:
            add()
            name, here = head.group(1), dict.fromkeys(FIELDS, 0)
        else:
            key, _, value = line.partition(":")
            if key in FIELDS:
                here[key] = int(value.split()[0]) * 1024
    add()
    return sums


def memory(pid):
    """memory_of() a process; zeros: it has ended"""
    try:
        with open("/proc/%d/smaps" % pid) as f:
            return memory_of(f)
    except OSError:
        return memory_of([])


def bpf_of(pids):
    """-> {map id: bytes}, {program id: {"run_time_ns", "run_cnt", "verified_insns", "prog_type"}}"""
    maps, programs = {}, {}
    for pid in pids:
        try:
            fds = os.listdir("/proc/%d/fdinfo" % pid)
        except OSError:
            continue
        for fd in fds:
            try:
                with open("/proc/%d/fdinfo/%s" % (pid, fd)) as f:
                    info = dict(line.split(":", 1) for line in f if ":" in line)
            except OSError:
                continue
            info = {k: v.strip() for k, v in info.items()}
            if "map_id" in info:
                maps[info["map_id"]] = int(info.get("memlock", 0))
            elif "prog_id" in info and "prog_type" in info:
                programs[info["prog_id"]] = {
                    k: int(info.get(k, 0))
                    for k in ("run_time_ns", "run_cnt", "verified_insns", "prog_type")
                }
    return maps, programs


class Meter(threading.Thread):
    """Follows the tree below pid, until stop(): threads and children that end stay counted."""

    def __init__(self, pid, every=0.1):
        super().__init__(daemon=True)
        self.pid, self.every, self.over = pid, every, threading.Event()
        self.lock, self.threads, self.peaks = threading.Lock(), {}, {}

    def look(self):
        with self.lock:
            for pid in tree(self.pid):
                self.peaks[pid] = max(self.peaks.get(pid, 0), high_water(pid))
                try:
                    for tid in os.listdir("/proc/%d/task" % pid):
                        with open("/proc/%d/task/%s/schedstat" % (pid, tid)) as f:
                            ns = int(f.read().split()[0])
                        key = (pid, tid)
                        self.threads[key] = max(ns, self.threads.get(key, 0))
                except OSError:
                    pass

    def cpu(self):
        """(seconds of the process itself, of those below it), now"""
        self.look()
        own = sum(ns for (pid, _), ns in self.threads.items() if pid == self.pid)
        return own / 1e9, (sum(self.threads.values()) - own) / 1e9

    def child_peak(self):
        """Highest resident bytes of any process below"""
        return max([b for pid, b in self.peaks.items() if pid != self.pid] or [0])

    def run(self):
        while not self.over.wait(self.every):
            self.look()

    def stop(self):
        self.over.set()
        self.join()
