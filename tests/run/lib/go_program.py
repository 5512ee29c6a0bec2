# SPDX-License-Identifier: Apache-2.0
"""Programs of tests/run/lib that are made of published Go modules: compiled for some minutes, once for all."""
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
UNFETCHED = ("dial tcp", "proxy.golang.org", "lookup ", "i/o timeout")


def compiled(tap, build, name, toolchain="local"):
    """-> the path of the program, or None and why there is none."""
    words = '. "$0/tap.sh"; . "$0/go.sh"; build=$1; new_go; echo "$go"'
    go = subprocess.run(["sh", "-c", words, HERE, build], stdout=subprocess.PIPE, text=True).stdout.strip()
    if not go:
        return None, "no Go >= 1.24, and none could be fetched"
    env = dict(os.environ, GOFLAGS="-mod=readonly -modcacherw", GOTOOLCHAIN=toolchain)
    env.setdefault("GOMODCACHE", build + "/go")
    env.setdefault("GOCACHE", build + "/go-build")
    out = "%s/tests/%s" % (build, name)
    done = subprocess.run([go, "build", "-trimpath", "-ldflags=-s -w", "-o", out, "."], env=env, stdout=subprocess.PIPE,
                          cwd=os.path.join(HERE, name), stderr=subprocess.STDOUT, text=True)
    if done.returncode and any(w in done.stdout for w in UNFETCHED):
        return None, "Go modules cannot be fetched: " + done.stdout.strip().splitlines()[-1]
    tap.check("%s is compiled" % name, done.returncode == 0, done.stdout)
    return (out, None) if done.returncode == 0 else (None, "it could not be compiled")
