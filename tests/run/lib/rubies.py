# SPDX-License-Identifier: Apache-2.0
"""The interpreters of CRuby on this machine that the ruby unwinder knows."""
import glob
import os
import subprocess

VERSIONS = ((2, 7), (3, 0), (3, 1), (3, 2), (3, 3))


def version_of(path):
    """(major, minor, micro), or None."""
    try:
        out = subprocess.run([path, "--disable=gems", "-e", "print RUBY_ENGINE, ' ', RUBY_VERSION"],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60).stdout.split()
    except (OSError, subprocess.TimeoutExpired):
        return None
    return tuple(map(int, out[1].split(b"."))) if len(out) == 2 and out[0] == b"ruby" else None


def rubies():
    """[(path, (major, minor, micro))], each file once, by version. FUSEE_TEST_RUBIES: more, with ':' between."""
    found = {}
    for path in glob.glob("/usr/bin/ruby*[0-9]") + os.environ.get("FUSEE_TEST_RUBIES", "").split(":"):
        real = os.path.realpath(path) if path else ""
        if not real or real in found or not os.access(real, os.X_OK):
            continue
        version = version_of(real)
        if version and version[:2] in VERSIONS:
            found[real] = version
    return sorted(found.items(), key=lambda item: (item[1], item[0]))
