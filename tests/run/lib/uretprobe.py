# SPDX-License-Identifier: Apache-2.0
"""uretprobes on functions of a program, for as long as a test holds them."""
import contextlib
import ctypes
import os
import struct
import subprocess

PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}[os.uname().machine]
SIZE, CLOEXEC = 128, 8
SOURCE = "/sys/bus/event_source/devices/uprobe/"
libc = ctypes.CDLL(None, use_errno=True)


def functions(path, names):
    """{name: file offset} of the functions of a program whose names begin with one of these."""
    segments = []
    for line in subprocess.check_output(["readelf", "-lW", path], text=True).splitlines():
        word = line.split()
        if word[:1] == ["LOAD"]:
            segments.append([int(n, 16) for n in (word[1], word[2], word[4])])
    found = {}
    symbols = [subprocess.run(["nm", *how, path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
               for how in ((), ("-D",))]
    for line in "".join(symbols).splitlines():
        word = line.split()
        if len(word) == 3 and word[1] in "tT" and word[2].startswith(names):
            at = int(word[0], 16)
            found[word[2]] = next(at - address + offset for offset, address, size in segments
                                  if address <= at < address + size)
    return found


def attach(path, offset):
    """A uretprobe there, in all processes. -> a descriptor; OSError"""
    with open(SOURCE + "type") as f:
        kind = int(f.read())
    with open(SOURCE + "format/retprobe") as f:
        bit = int(f.read().strip().split(":")[1])
    name = ctypes.create_string_buffer(path.encode())
    attr = bytearray(SIZE)
    struct.pack_into("=IIQQQQQIIQQ", attr, 0, kind, SIZE, 1 << bit, 0, 0, 0, 0, 0, 0, ctypes.addressof(name), offset)
    fd = libc.syscall(PERF_EVENT_OPEN, (ctypes.c_char * SIZE).from_buffer(attr), -1, 0, -1, CLOEXEC)
    if fd < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return fd


@contextlib.contextmanager
def probed(path, names="probed"):
    """All functions of the program whose names begin so return through a uretprobe, in the block. names: or a tuple of
    them. -> their names"""
    held = []
    try:
        at = functions(path, names)
        for offset in at.values():
            held.append(attach(path, offset))
        yield sorted(at)
    finally:
        for fd in held:
            os.close(fd)


def missing(path):
    """Why there can be no uretprobe here; None: there can."""
    try:
        with probed(path):
            return None
    except OSError as e:
        return "no uretprobe: %s" % e
