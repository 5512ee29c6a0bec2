# SPDX-License-Identifier: Apache-2.0
"""A busy machine for a profiler: lib/crowd.c, compiled and started."""
import glob
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))


class Crowd:
    """crowd.c at work: all its programs have names that begin with the prefix."""

    def __init__(self, work, prefix, rate, mappers, mappings):
        self.work, self.all, self.rate, self.nmappers, self.nmappings = work, [], rate, mappers, mappings
        source = os.path.join(HERE, "crowd.c")

        def build(name, *flags):
            path = os.path.join(work, prefix + name)
            subprocess.run(["gcc", "-D_GNU_SOURCE", "-O1", "-o", path, *flags, source], check=True)
            return path
        wanted = b"0123456789abcdef".hex()
        self.programs = [build("prog%d" % i, "-DFLAVOUR=%d" % i, "-Wl,--build-id=0x%s%08x" % (wanted, i))
                         for i in range(6)]
        self.libraries = [build("lib%d.so" % i, "-DLIBRARY", "-shared", "-fPIC", "-Wl,-z,noseparate-code",
                                "-Wl,--build-id=0x%s%08x" % (wanted, 100 + i)) for i in range(4)]
        self.prefix = prefix
        self.spawner = self.counted = None

    def start(self, *arguments, **more):
        self.all.append(subprocess.Popen([self.programs[0], *arguments], **more))
        return self.all[-1]

    def begin(self):
        fresh = os.path.join(self.work, "fresh")
        os.mkdir(fresh)
        self.spawner = self.start("spawn", str(self.rate), fresh, self.prefix, self.libraries[0], *self.programs,
                                  stdout=subprocess.PIPE)
        self.start("libraries", *self.libraries)
        self.start("rotate", *big_files())
        self.mappers = [self.start("maps", self.libraries[i % 4], str(self.nmappings))
                        for i in range(self.nmappers)]

    def mappings(self):
        """Executable mappings of all its processes."""
        n = 0
        for p in self.all:
            with open("/proc/%d/maps" % p.pid) as f:
                n += sum(line.split()[1][2] == "x" for line in f)
        return n

    def end(self):
        """-> processes that were started, those of them that failed."""
        if self.spawner and not self.counted:
            self.spawner.terminate()
            self.counted = [int(n) for n in self.spawner.communicate()[0].split()]
        for p in self.all:
            p.kill()
            p.wait()
        return self.counted


def big_files():
    """Programs and libraries of this machine with most code: more unwind tables than there is room for."""
    found = {}
    for pattern in ("/usr/lib/x86_64-linux-gnu/*.so*", "/usr/lib/gcc/x86_64-linux-gnu/*/*", "/usr/lib/llvm-*/lib/*.so*",
                    "/usr/bin/*"):
        for path in glob.glob(pattern):
            if os.path.isfile(path):
                found[os.path.realpath(path)] = os.path.getsize(path)
    return sorted(found, key=found.get, reverse=True)[:60]
