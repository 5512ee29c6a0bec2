# SPDX-License-Identifier: Apache-2.0
"""A fusee that is installed somewhere, and what building a plugin against it wants."""
import os
import subprocess

TOP = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))


def run(*argv, env=None, cwd=None):
    return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=dict(os.environ, **(env or {})), cwd=cwd)


def install(tap, build, work):
    """An installed fusee, with the prefix that the build has. -> root, environment for
    pkg-config, its folder of plugins"""
    with open(os.path.join(build, "libdir")) as f:
        libdir = f.read().strip()
    dest = os.path.join(work, "dest")
    name = os.path.basename(build)
    sanitizer = name[6:].replace("address-undefined", "address,undefined") if "-" in name else ""
    r = run("make", "-s", "-C", TOP, "install", "SANITIZER=" + sanitizer,
            "PREFIX=" + os.path.dirname(libdir), "DESTDIR=" + dest)
    tap.check("fusee is installed", r.returncode == 0, r.stdout[-3000:])
    return dest, {"PKG_CONFIG_PATH": dest + libdir + "/pkgconfig",
                  "PKG_CONFIG_SYSROOT_DIR": dest}, dest + libdir + "/fusee/plugins"
