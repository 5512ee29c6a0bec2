# SPDX-License-Identifier: Apache-2.0
"""Independent readers of Parquet, from PyPI: DuckDB, Arrow and polars in a venv of the build's, made once."""
import fcntl
import os
import subprocess
import sys

WHEELS = {"duckdb": "1.4", "pyarrow": "20", "polars": "1"}  # at least
UNFETCHED = ("No matching distribution", "Could not find a version", "NewConnectionError", "Connection", "ensurepip")


def python(build, name="readers", modules=tuple(WHEELS), wheels=tuple("%s>=%s" % w for w in WHEELS.items()), options=()):
    """-> the interpreter that has them, or None and why there is none. Tests that run at once make them once."""
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
                return None, "%s cannot be fetched: " % ", ".join(modules) + done.stdout.strip().splitlines()[-1]
            raise RuntimeError(done.stdout)
    return interpreter, None


def reexec(build, tap):
    """Goes on with an interpreter that has the readers; without it, the test is skipped."""
    if os.environ.get("FUSEE_TEST_READERS"):
        return
    found, why = python(build)
    if not found:
        tap.skip("readers of Parquet", why)
        tap.end()
    os.execve(found, [found, *sys.argv], dict(os.environ, FUSEE_TEST_READERS="1"))
