# SPDX-License-Identifier: Apache-2.0
"""Independent readers of Parquet: DuckDB, Arrow and polars from PyPI in a venv of the build's, made once; hyparquet from npm."""
import fcntl
import os
import shutil
import subprocess
import sys

import venvs

WHEELS = {"duckdb": "1.4", "pyarrow": "20", "polars": "1"}  # at least
HYPARQUET = {"hyparquet": "^1.10", "hyparquet-compressors": "^1.1"}
UNREACHED = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH", "EHOSTUNREACH")


def python(build, name="readers", modules=tuple(WHEELS), wheels=tuple("%s>=%s" % w for w in WHEELS.items()), options=()):
    return venvs.python(build, name, modules, wheels, options)


def hyparquet(build):
    """-> a folder with the modules of hyparquet, or None and why there is none."""
    if not shutil.which("node") or not shutil.which("npm"):
        return None, "no node or npm"
    folder = os.path.join(os.path.abspath(build), "hyparquet")
    with open(folder + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not all(os.path.exists("%s/node_modules/%s/package.json" % (folder, name)) for name in HYPARQUET):
            os.makedirs(folder, exist_ok=True)
            done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", folder,
                                   *("%s@%s" % pair for pair in HYPARQUET.items())],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode and any(word in done.stdout for word in UNREACHED):
                return None, "hyparquet cannot be fetched: " + done.stdout.strip().splitlines()[-1]
            if done.returncode:
                raise RuntimeError(done.stdout)
    return folder, None


def reexec(build, tap):
    """Goes on with an interpreter that has the readers; without it, the test is skipped."""
    if os.environ.get("FUSEE_TEST_READERS"):
        return
    found, why = python(build)
    if not found:
        tap.skip("readers of Parquet", why)
        tap.end()
    os.execve(found, [found, *sys.argv], dict(os.environ, FUSEE_TEST_READERS="1"))
