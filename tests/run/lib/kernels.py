#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a shell script under another kernel: one of Debian's, in a virtual machine without hardware help.

usage: tests/run/lib/kernels.py [-s SECONDS] KERNEL BUILD SCRIPT [PROGRAM]...

KERNEL is 5.10, 6.1, 6.12 or 7; fetched by apt when it is first asked for, and kept in
$XDG_CACHE_HOME/fusee-tests/kernels. In the machine, which has two CPUs and nothing but memory, stand
busybox, BUILD/fusee with its plugins and tool_bpf in /fusee, and each PROGRAM, with their libraries, at
the paths that they have here; /tmp can be written. The script is busybox sh's, and root's. What it
prints is printed, what the kernel says goes to stderr, and its exit code is handed on; 77: not possible
here, 124: not done in time.
"""
import collections
import ctypes
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

# the name: where Debian has it, and what its package is called there
KERNELS = {
    "5.10": ("bullseye", r"linux-image-5\.10\.0-\d+-cloud-amd64"),
    "6.1": ("bookworm", r"linux-image-6\.1\.0-\d+-cloud-amd64"),
    "6.12": ("trixie", r"linux-image-6\.12\.\d+\+deb13-cloud-amd64"),
    "7": ("sid", r"linux-(image|binary)-7[\d.]+\+deb\d+-cloud-amd64"),
}
MIRROR = "http://deb.debian.org/debian"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
FETCH_SECONDS = 300
END = "the guest's job ended with "

INIT = r"""#!/bin/busybox sh
export PATH=/bin:/usr/bin:/sbin:/usr/sbin HOME=/tmp LC_ALL=C
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs -o mode=1777 tmp /tmp
mkdir -p /dev/shm
mount -t tmpfs shm /dev/shm
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t bpf bpf /sys/fs/bpf
mount -t tracefs trace /sys/kernel/tracing
mount -t securityfs security /sys/kernel/security
ip link set lo up
stty -F /dev/ttyS1 raw -echo
cd /tmp
sh /job </dev/null >/dev/ttyS1 2>&1
echo "END$?" >/dev/ttyS1
poweroff -f
"""

# seconds: of the whole run, boot included. code: None if the script did not come to its end
Result = collections.namedtuple("Result", "code output console seconds")


class Missing(Exception):
    """Why a kernel can't be had, or run, here."""


def run(*command, **more):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", **more)


def need_tools():
    for tool in ("qemu-system-x86_64", "busybox", "cpio", "apt-get", "dpkg", "ldd"):
        if not shutil.which(tool):
            raise Missing(tool + " is not installed")
    if os.uname().machine != "x86_64":
        raise Missing("what is built here does not run on x86-64")
    if not run("ldd", shutil.which("busybox")).returncode:
        raise Missing("busybox is not the static one (package busybox-static)")


# ---- kernels ----

def cache():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(home, "fusee-tests", "kernels")


def apt_options(suite, folder):
    """apt as it is set up here, but for this suite and with all it writes below the folder."""
    known = run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages").stdout
    mirror = next((s for s in known.split() if re.search("/debian/?$", s)), MIRROR)
    keys = " signed-by=" + KEYS if os.path.exists(KEYS) else ""
    for place in ("lists/partial", "cache/archives/partial"):
        os.makedirs(os.path.join(folder, place))
    with open(os.path.join(folder, "sources.list"), "w") as f:
        f.write("deb [arch=amd64%s] %s %s main\n" % (keys, mirror, suite))
    options = {"Dir::Etc::sourcelist": folder + "/sources.list", "Dir::Etc::sourceparts": "/dev/null",
               "Dir::State::Lists": folder + "/lists", "Dir::Cache": folder + "/cache",
               "Acquire::Languages": "none", "Acquire::Retries": "1", "Acquire::http::Timeout": "20",
               "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
               "Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled": "false"}
    if not os.geteuid():
        options["APT::Sandbox::User"] = "root"  # the folder is not for others
    return ["-o%s=%s" % (name, value) for name, value in options.items()]


def number(package):
    return [int(n) for n in re.findall(r"\d+", package)]


def download(name, folder):
    """-> the package's name; its files are in folder/files then."""
    suite, pattern = KERNELS[name]
    options = apt_options(suite, folder)
    done = run("apt-get", "-q", *options, "update", timeout=FETCH_SECONDS)
    listed = run("apt-cache", *options, "pkgnames", "linux-").stdout.split()
    packages = sorted((p for p in listed if re.fullmatch(pattern, p)), key=number)
    if not packages:
        last = [s for s in done.stdout.splitlines() if re.match("[EW]:", s)]
        raise Missing("the Debian mirror has no kernel %s (%s)" % (name, last[-1] if last else suite))
    done = run("apt-get", "-q", *options, "download", packages[-1], cwd=folder, timeout=FETCH_SECONDS)
    debs = glob.glob(folder + "/*.deb")
    if done.returncode or not debs:
        raise Missing("%s cannot be fetched: %s" % (packages[-1], done.stdout.strip()[-200:]))
    run("dpkg", "-x", debs[0], folder + "/files")
    return packages[-1]


def fetch(name):
    """The path of that kernel's image, fetched if it is not there yet."""
    kept = glob.glob(os.path.join(cache(), name, "*.vmlinuz"))
    if kept:
        return sorted(kept, key=number)[-1]
    os.makedirs(os.path.join(cache(), name), exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=cache()) as folder:
        try:
            package = download(name, folder)
        except subprocess.TimeoutExpired:
            raise Missing("the Debian mirror does not answer in time") from None
        images = glob.glob(folder + "/files/boot/vmlinuz-*") + glob.glob(
            folder + "/files/usr/lib/modules/*/vmlinuz")
        if not images:
            raise Missing("%s holds no kernel" % package)
        to = os.path.join(cache(), name, package + ".vmlinuz")
        os.rename(images[0], to)
    return to


# ---- what is in the machine ----

class Image:
    """An initramfs in a folder of its own below work. add() takes programs and files."""

    def __init__(self, work):
        self.root = os.path.join(work, "initramfs")
        for place in ("bin", "dev", "proc", "sys", "tmp", "root", "etc"):
            os.makedirs(os.path.join(self.root, place))
        busybox = shutil.which("busybox")
        shutil.copy(busybox, self.root + "/bin/busybox")
        for tool in run(busybox, "--list").stdout.split():
            if tool != "busybox":
                os.symlink("busybox", os.path.join(self.root, "bin", tool))
        self.write("/init", INIT.replace("END", END), 0o755)
        self.write("/etc/passwd", "root:x:0:0::/tmp:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")

    def write(self, path, text, mode=0o644):
        with open(self.root + path, "w") as f:
            f.write(text)
        os.chmod(self.root + path, mode)

    def add(self, path, to=None):
        """A file, at the same path or at another; a program's or library's libraries with it."""
        self._copy(path, to or os.path.abspath(path))
        with open(path, "rb") as f:
            if f.read(4) != b"\x7fELF":
                return
        for library in re.findall(r"(/\S+) \(0x", run("ldd", path).stdout):
            self._copy(library, library)

    def _copy(self, path, to):
        to = self.root + to
        if not os.path.exists(to):
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy(path, to)

    def add_build(self, build):
        """/fusee: the program with its plugins beside it, and tool_bpf."""
        self.add(os.path.join(build, "fusee"), "/fusee/fusee")
        for plugin in glob.glob(os.path.join(build, "plugins", "*.so")):
            self.add(plugin, "/fusee/plugins/" + os.path.basename(plugin))
        tool = os.path.join(build, "tests", "tool_bpf")
        if os.path.exists(tool):
            self.add(tool, "/fusee/tool_bpf")

    def pack(self, script):
        """-> the archive's path, with that script as the job."""
        to = self.root + ".cpio"
        self.write("/job", script)
        with open(to, "wb") as f:
            find = subprocess.Popen(["find", "."], cwd=self.root, stdout=subprocess.PIPE)
            subprocess.run(["cpio", "-o", "-H", "newc", "--quiet", "-R", "0:0"], cwd=self.root,
                           stdin=find.stdout, stdout=f, check=True)
            find.wait()
        return to


# ---- running ----

def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def read(path):
    with open(path, "rb") as f:
        return f.read().decode("utf-8", "replace")


def boot(kernel, image, script, seconds=120, cpus=2, memory=1024):
    """Runs the script under the kernel (an image's path), with so many CPUs and MiB of memory."""
    start = time.monotonic()
    archive, out, log = image.pack(script), image.root + ".out", image.root + ".console"
    # without the accelerator that a nested machine may lack; 6.12 does not boot with qemu 7.2's cx16; kernels look
    # for ticks of the timer when they boot, and panic if the guest gets no CPU time for some of them
    process = subprocess.Popen(
        ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max,-cx16", "-smp", str(cpus), "-m", str(memory),
         "-kernel", kernel, "-initrd", archive, "-append", "console=ttyS0 quiet panic=-1 nokaslr no_timer_check",
         "-display", "none", "-monitor", "none", "-nic", "none", "-no-reboot",
         "-serial", "file:" + log, "-serial", "file:" + out],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        preexec_fn=die_with_parent)
    try:
        said = process.communicate(timeout=seconds)[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        said = "not done in %d s\n" % seconds
    finally:
        process.kill()
        process.wait()
    output, code = (read(out) if os.path.exists(out) else ""), None
    at = output.rfind(END)
    if at >= 0 and output[at + len(END):].strip().isdigit():
        code, output = int(output[at + len(END):]), output[:at]
    return Result(code, output, (read(log) if os.path.exists(log) else "") + said,
                  time.monotonic() - start)


def parts(output):
    """What a script printed: after a line `=== NAME` until `=== exit CODE`. -> name -> (text, exit code or None)"""
    found, name = {}, None
    for line in output.splitlines():
        if line.startswith("=== exit "):
            found[name][1] = int(line[9:])
        elif line.startswith("=== "):
            name = line[4:]
            found[name] = ["", None]
        elif name:
            found[name][0] += line + "\n"
    return {name: tuple(value) for name, value in found.items()}


def main():
    arguments, seconds = sys.argv[1:], 120
    if arguments[:1] == ["-s"]:
        seconds, arguments = float(arguments[1]), arguments[2:]
    if len(arguments) < 3 or arguments[0] not in KERNELS:
        sys.exit(__doc__)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    name, build, script = arguments[:3]
    try:
        need_tools()
        kernel = fetch(name)
    except Missing as e:
        print("kernels:", e, file=sys.stderr)
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="fusee-kernels-") as work:
        image = Image(work)
        image.add_build(build)
        for program in arguments[3:]:
            image.add(program)
        got = boot(kernel, image, read(script), seconds)
    sys.stderr.write(got.console)
    sys.stdout.write(got.output)
    print("%s: %.1f s" % (os.path.basename(kernel), got.seconds), file=sys.stderr)
    sys.exit(124 if got.code is None else got.code)


if __name__ == "__main__":
    main()
