# SPDX-License-Identifier: Apache-2.0
"""Builds of python-build-standalone, which uv installs: from the published Go module that embeds them, unpacked once for all."""
import fcntl
import glob
import gzip
import json
import os
import shutil
import subprocess

MODULE = "github.com/kluctl/go-embed-python"
SUMS = {"3.10.16-20241219-1": "h1:bfJRrtWlbdrPtwXXXZzA95yj2Pr9AvSbxDEm8YvbaP0=",
        "3.11.11-20241219-1": "h1:yVXFTxa6cvhLC6TwkDEHmNaiWlDyaFEGiXd1DQdoeOU=",
        "3.13.1-20241219-1": "h1:x1cSEj4Ug5mpuZgUHLvUmlc5r//KHFn6iYiRSrRcVy4=",
        "3.14.6-20260610-1": "h1:oGUS7++Wm3LgxUfD6AmJgKbKQD2wdQFO9PzyJv6T+E4="}


def fetch(build, release):
    """-> the folder of the module, or None and why there is none."""
    go = shutil.which("go") or next(iter(sorted(glob.glob("/usr/lib/go-*/bin/go"))), None)
    if not go:
        return None, "Go is not installed"
    env = dict(os.environ, GOMODCACHE=os.path.join(build, "go"), GOFLAGS="-modcacherw", GOTOOLCHAIN="local",
               GONOSUMDB="github.com/kluctl")
    env.pop("GOROOT", None)
    got = subprocess.run([go, "mod", "download", "-json", "%s@v0.0.0-%s" % (MODULE, release)], env=env, cwd="/",
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        said = json.loads(got.stdout)
    except ValueError:
        return None, "the Go module cannot be fetched: " + got.stderr.strip()[-200:]
    if said.get("Error") or said.get("Sum") != SUMS[release]:
        return None, "the Go module cannot be fetched: " + said.get("Error", "its sum is another")
    return said["Dir"], None


def unpack(module, to):
    shutil.copytree(os.path.join(module, "python/internal/data/linux-amd64"), to)
    for path in glob.glob(to + "/**/*.gz", recursive=True):
        with gzip.open(path) as packed, open(path[:-3], "wb") as f:
            shutil.copyfileobj(packed, f)
        os.unlink(path)
    for path in glob.glob(to + "/bin/python3.*[0-9]"):
        os.chmod(path, 0o755)


def standalone(build, release):
    """-> the folder of a build, which has bin and lib, or None and why there is none."""
    to = os.path.join(build, "pythons", release)
    os.makedirs(os.path.dirname(to), exist_ok=True)
    with open(to + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run beside each other
        if not os.path.exists(to):
            module, why = fetch(build, release)
            if why:
                return None, why
            shutil.rmtree(to + ".new", ignore_errors=True)
            unpack(module, to + ".new")
            os.rename(to + ".new", to)
    return to, None
