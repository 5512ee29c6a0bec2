# SPDX-License-Identifier: Apache-2.0
"""Virtual environments with packages of PyPI, in the build's folder: tests that run at once make each once."""
import fcntl
import os
import subprocess
import sys

UNFETCHED = ("No matching distribution", "Could not find a version", "NewConnectionError", "Connection", "ensurepip")


def python(build, name, modules, wheels, options=()):
    """-> the interpreter of build/NAME, which can import the modules, or None and why there is none."""
    with open(os.path.join(build, name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return made(os.path.join(os.path.abspath(build), name), modules, wheels, options)


def made(folder, modules, wheels, options):
    interpreter = os.path.join(folder, "bin", "python")
    check = [interpreter, "-c", "import " + ", ".join(modules)]
    if os.path.exists(interpreter) and subprocess.run(check, capture_output=True).returncode == 0:
        return interpreter, None
    for command in ([sys.executable, "-m", "venv", "--clear", folder],
                    [interpreter, "-m", "pip", "-q", "--disable-pip-version-check", "install", "--only-binary", ":all:", *options, *wheels],
                    check):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            if any(word in done.stdout for word in UNFETCHED):
                return None, "%s cannot be fetched: %s" % (", ".join(modules), done.stdout.strip().splitlines()[-1])
            raise RuntimeError(done.stdout)
    return interpreter, None
