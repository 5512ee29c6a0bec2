# SPDX-License-Identifier: Apache-2.0
"""A build of fusee whose BPF programs count their helper calls and steps; what programs are."""

import ctypes
import glob
import os
import re
import shutil
import struct
import subprocess

import meter

LOOKUP_ELEM, MAP_BY_ID = 1, 14  # bpf()'s commands
PERF_EVENT = 7  # BPF_PROG_TYPE_PERF_EVENT
LOOKUP, OUTPUT, READ = 1, 25, 112  # helpers
STEPS, BYTES, COUNTED = 0, 256, 257  # places beside the helpers' numbers; how many there are
DEFINED = re.compile(r"\(\*(\w+)\)\([^;]*?\)\s*=\s*\(void \*\)(\d+);", re.S)
HEADER = """/* Included before each BPF program. A helper is a function pointer: its definition,
 * (*name)(..), is no use of a macro with arguments. */
struct counted_sums {
	unsigned long long n[%(counted)d];
};

struct {
	int (*type)[2 /* ARRAY */];
	int (*max_entries)[1];
	unsigned *key;
	struct counted_sums *value;
} fusee_counted __attribute__((section(".maps"), used, weak));

static void *(*counted_lookup)(void *map, const void *key) = (void *)1;

static __attribute__((always_inline)) inline void counted(unsigned what, unsigned long long by)
{
	unsigned zero = 0;
	struct counted_sums *c = counted_lookup(&fusee_counted, &zero);

	if (c)
		__sync_fetch_and_add(&c->n[what], by);
}

#define COUNTED_SECOND(a, b, ...) b
"""
KERNEL = "include/fusee/unwinder_kernel.h"
STEP = re.compile(r"#define FUSEE_NATIVE_STEP\(.*?fusee_current\(\); *\\\n", re.S)


def helpers(root):
    """{name: number} of all that the BPF sources declare"""
    out, paths = {}, []
    for pattern in ("include/fusee/unwinder*.h", "bpf/*.h", "bpf/*.c", "plugins/unwinders/*/*.bpf.c"):
        paths += glob.glob(os.path.join(root, pattern))
    for path in paths:
        with open(path) as f:
            out.update((name, int(n)) for name, n in DEFINED.findall(f.read()))
    return out


def header(root):
    text = HEADER % dict(counted=COUNTED)
    for name, number in sorted(helpers(root).items()):
        extra = ""
        if number == READ:
            extra = "counted(%d, COUNTED_SECOND(__VA_ARGS__, 0)); " % BYTES
        text += "#define %s(...) ({ %scounted(%d, 1); (%s)(__VA_ARGS__); })\n" % (
            name,
            extra,
            number,
            name,
        )
    return text


def counting_steps(root):
    """The header that makes a step of a native unwinder's function, which counts those of dwarf."""
    with open(os.path.join(root, KERNEL)) as f:
        text = f.read()
    found = STEP.search(text)
    if not found:
        raise RuntimeError("%s has no FUSEE_NATIVE_STEP that is understood" % KERNEL)
    count = 'if (#name[0] == \'d\') counted(%d, 1); \\\n' % STEPS
    return text[: found.end()] + count + text[found.end() :]


def build(root, build_dir):
    """-> its path. Only what depends on a BPF program is made anew."""
    folder = os.path.join(build_dir, "bench", "counting")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for part in ("gen", "obj", "libdir"):
        subprocess.run(["cp", "-a", os.path.join(build_dir, part), folder], check=True)
    path = os.path.join(folder, "counting.h")
    with open(path, "w") as f:
        f.write(header(root))
    first = os.path.join(folder, "first")
    os.makedirs(os.path.join(first, "fusee"))
    with open(os.path.join(first, "fusee", os.path.basename(KERNEL)), "w") as f:
        f.write(counting_steps(root))
    for part in ("core/bpf", "plugins/unwinders"):  # those that embed BPF programs
        shutil.rmtree(os.path.join(folder, "obj", part), ignore_errors=True)
    subprocess.run(
        ["make", "-s", "-C", root, "B=" + folder, "CLANG=clang -I %s -include %s" % (first, path), "all"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return os.path.join(folder, "fusee")


def bpf(command, attr):
    """-> its answer, None: it fails. attr: a buffer of ctypes."""
    r = ctypes.CDLL(None).syscall(meter.BPF_SYSCALL[os.uname().machine], command, attr, len(attr))
    return r if r >= 0 else None


def attribute(data):
    return ctypes.create_string_buffer(data, 128)


def counted_map(number):
    """What stands in it."""
    fd = bpf(MAP_BY_ID, attribute(struct.pack("=I", number)))
    key = ctypes.create_string_buffer(4)
    value = ctypes.create_string_buffer(8 * COUNTED)
    at = struct.pack("=IIQQQ", fd, 0, ctypes.addressof(key), ctypes.addressof(value), 0)
    bpf(LOOKUP_ELEM, attribute(at))
    os.close(fd)
    return struct.unpack("=%dQ" % COUNTED, value.raw)


def counts(pid):
    """[calls by helper number, with STEPS and BYTES] up to now, of all its programs"""
    numbers, sums = set(), [0] * COUNTED
    for fd in os.listdir("/proc/%d/fdinfo" % pid):
        with open("/proc/%d/fdinfo/%s" % (pid, fd)) as f:
            info = dict(line.split(":", 1) for line in f if ":" in line)
        if "map_id" in info and int(info["value_size"]) == 8 * COUNTED:
            numbers.add(int(info["map_id"]))
    for number in numbers:
        sums = [a + b for a, b in zip(sums, counted_map(number))]
    return sums
