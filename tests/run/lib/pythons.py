# SPDX-License-Identifier: Apache-2.0
"""The interpreters of CPython on this machine that the python unwinder knows."""
import glob
import os
import subprocess

VERSIONS = range(8, 15)


def version_of(path):
    """(major, minor, micro), or None."""
    try:
        out = subprocess.run([path, "-I", "-S", "-c", "import sys; print(sys.implementation.name, *sys.version_info[:3])"],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60).stdout.split()
    except (OSError, subprocess.TimeoutExpired):
        return None
    return tuple(map(int, out[1:])) if len(out) == 4 and out[0] == b"cpython" else None


def candidates():
    yield "/usr/bin/python3"
    for name in ("python3.*[0-9]", "python3.*[0-9]t", "python3.*[0-9]-nogil"):
        yield from sorted(glob.glob("/usr/bin/" + name) + glob.glob("/usr/local/bin/" + name))
    for root in (os.environ.get("PYENV_ROOT"), os.path.expanduser("~/.pyenv")):
        if root:
            yield from sorted(glob.glob(os.path.join(root, "versions/3.*/bin/python3")))
    yield from os.environ.get("FUSEE_TEST_PYTHONS", "").split(":")


def has_gil(path):
    """Not the free-threaded builds, 3.13t and 3.14t."""
    return subprocess.run([path, "-I", "-S", "-c", "import sys; sys.exit(not sys._is_gil_enabled())"],
                          stderr=subprocess.DEVNULL, timeout=60).returncode == 0 if version_of(path) >= (3, 13) else True


def pythons():
    """[(path, (major, minor, micro))], each file once, by version."""
    found = {}
    for path in candidates():
        real = os.path.realpath(path)
        if not path or real in found or not os.access(real, os.X_OK):
            continue
        version = version_of(real)
        if version and version[0] == 3 and version[1] in VERSIONS:
            found[real] = version
    return sorted(found.items(), key=lambda item: (item[1], item[0]))
