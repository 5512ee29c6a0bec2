# SPDX-License-Identifier: Apache-2.0
"""Podman's service, containerd and Docker of a test's own: with their data in a folder of the test's, in a mount namespace whose
/run is empty, so that their usual sockets are the test's and nothing of the machine's is touched."""
import glob
import os
import shutil
import struct
import subprocess
import time
from evidence import within  # noqa: E402

IMAGE = "localhost/box:1"
BUSY = ["/bin/sh", "-c", "while :; do :; done"]
PARENT = "fusee-names-%d" % os.getpid()  # the control group of all containers, and containerd's namespace
LIMITS = ["--cgroup-parent", "/" + PARENT, "--network", "none", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024", "--pids-limit=-1"]


def unpack(work):
    """Docker and containerd, if they are not installed: from their packages into the folder, and first in PATH. Installed, they
    would be started, now and with the machine. None, or why not."""
    if shutil.which("dockerd") and shutil.which("containerd"):
        return None
    folder = work + "/packages"
    os.mkdir(folder)
    got = subprocess.run(["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", "docker.io", "containerd"], cwd=folder,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if got.returncode:
        return "Docker and containerd cannot be downloaded: " + got.stdout.replace("\n", " ")[-200:]
    for package in glob.glob(folder + "/*.deb"):
        run(["dpkg-deb", "-x", package, folder])
        os.unlink(package)
    os.environ["PATH"] = "%s/usr/sbin:%s/usr/bin:%s" % (folder, folder, os.environ["PATH"])
    return None


def run(command, **more):
    """Its output; RuntimeError with what it said."""
    p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, **more)
    if p.returncode:
        raise RuntimeError("%s: %s" % (" ".join(command), p.stderr.decode(errors="replace")[-2000:]))
    return p.stdout


def wait_for_file(path, proc, seconds=30):
    end = time.time() + within(seconds)
    while not os.path.exists(path):
        if time.time() > end or proc.poll() is not None:
            raise RuntimeError("%s did not come" % path)
        time.sleep(0.05)


def root_of_image(work):
    """A folder with busybox, as an image has it."""
    root = work + "/image"
    os.makedirs(root + "/bin")
    shutil.copy("/bin/busybox", root + "/bin/busybox")
    for name in ("sh", "sleep"):
        os.symlink("busybox", root + "/bin/" + name)
    return root


class Podman:
    SOCKET = "/run/podman/podman.sock"

    def __init__(self, work):
        self.work, self.proc = work, None
        self.command = ["podman", "--root", work + "/podman", "--runroot", work + "/podman-run", "--tmpdir", work + "/podman-tmp",
                        "--storage-driver", "overlay", "--cgroup-manager", "cgroupfs", "--events-backend", "file", "--runtime", "runc"]
        os.makedirs(os.path.dirname(self.SOCKET), exist_ok=True)

    def __call__(self, *args, **more):
        return run(self.command + list(args), **more).decode().strip()

    def image(self, root, name=IMAGE, *changes):
        tar = run(["tar", "-C", root, "-c", "."])
        self("import", *changes, "-", name, input=tar)

    def archive(self, name, path):
        self("save", "--format", "oci-archive", "-o", path, name)

    def serve(self):
        self.proc = subprocess.Popen(self.command + ["system", "service", "-t", "0", "unix://" + self.SOCKET],
                                     stdout=subprocess.DEVNULL, stderr=open(self.work + "/podman.log", "a"))
        wait_for_file(self.SOCKET, self.proc)

    def start(self, name, *more):
        """-> its id"""
        return self("run", "-d", "--name", name, *LIMITS, *more, IMAGE, *BUSY)

    def kill(self):
        if self.proc:
            self.proc.kill()
            self.proc.wait()
            self.proc = None
            if os.path.exists(self.SOCKET):
                os.unlink(self.SOCKET)

    def end(self):
        self.kill()
        subprocess.run(self.command + ["rm", "-f", "-a", "-t", "0"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    """A field of a protobuf message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def labels_field(number, labels):
    return b"".join(field(number, field(1, k) + field(2, v)) for k, v in labels.items())


class Containerd:
    SOCKET = "/run/containerd/containerd.sock"
    CONFIG = """version = 2
root = "%(work)s/containerd"
state = "/run/containerd"
[grpc]
address = "%(socket)s"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "localhost/pause:1"
restrict_oom_score_adj = true
"""

    def __init__(self, work):
        self.work, self.proc = work, None
        with open(work + "/containerd.toml", "w") as f:
            f.write(self.CONFIG % {"work": work, "socket": self.SOCKET})

    def ctr(self, *args, space=PARENT):
        return run(["ctr", "-a", self.SOCKET, "-n", space, *args]).decode().strip()

    def serve(self):
        self.proc = subprocess.Popen(["containerd", "-c", self.work + "/containerd.toml"], stdout=subprocess.DEVNULL,
                                     stderr=open(self.work + "/containerd.log", "a"))
        wait_for_file(self.SOCKET, self.proc)
        end = time.time() + within(20)
        while True:
            try:
                return self.ctr("version")
            except RuntimeError:
                if time.time() > end:
                    raise
                time.sleep(0.1)

    def start(self, name, **labels):
        more = [w for k, v in labels.items() for w in ("--label", "%s=%s" % (k, v))]
        self.ctr("run", "-d", *more, IMAGE, name, *BUSY)

    def call(self, method, message):
        """A call of the CRI; -> the answer's message."""
        with open(self.work + "/call", "wb") as f:
            f.write(b"\0" + struct.pack(">I", len(message)) + message)
        out = run(["curl", "-s", "--http2-prior-knowledge", "--unix-socket", self.SOCKET, "-H", "te: trailers", "-H",
                   "content-type: application/grpc", "--data-binary", "@%s/call" % self.work, "-D", self.work + "/head",
                   "http://localhost/runtime.v1.RuntimeService/" + method])
        with open(self.work + "/head") as f:
            head = f.read()
        if "grpc-status: 0" not in head:
            raise RuntimeError("%s: %s" % (method, head))
        return out[5:]

    def pod(self, name, uid, namespace, container, **labels):
        """A pod with one container, as a kubelet asks for them; -> the ids of sandbox and container."""
        own = dict(labels, **{"io.kubernetes.pod.name": name, "io.kubernetes.pod.namespace": namespace, "io.kubernetes.pod.uid": uid})
        host = field(1, 2)  # the network namespace of the node
        sandbox = (field(1, field(1, name) + field(2, uid) + field(3, namespace)) + field(3, self.work + "/logs") +
                   labels_field(6, own) + field(8, field(1, "/kubepods/burstable/pod" + uid) + field(2, field(1, host))))
        sid = self.call("RunPodSandbox", field(1, sandbox))[2:].decode()
        own["io.kubernetes.container.name"] = container
        config = (field(1, field(1, container)) + field(2, field(1, IMAGE)) + field(3, BUSY[0]) +
                  b"".join(field(4, a) for a in BUSY[1:]) + labels_field(9, own) + field(15, field(2, field(3, host))))
        cid = self.call("CreateContainer", field(1, sid) + field(2, config) + field(3, sandbox))[2:].decode()
        self.call("StartContainer", field(1, cid))
        return sid, cid

    def kill(self):
        if self.proc:
            self.proc.kill()
            self.proc.wait()
            self.proc = None
            if os.path.exists(self.SOCKET):
                os.unlink(self.SOCKET)

    def end(self):
        """Its containers go too."""
        try:
            if not self.proc:
                self.serve()
            for space in (PARENT, "k8s.io", "moby"):
                for name in self.ctr("t", "ls", "-q", space=space).split():
                    subprocess.run(["ctr", "-a", self.SOCKET, "-n", space, "t", "rm", "-f", name], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        except RuntimeError:
            pass
        self.kill()


class Docker:
    """It uses the containerd of the same /run, in a namespace of its own there."""
    SOCKET = "/run/docker.sock"

    def __init__(self, work):
        self.work, self.proc = work, None

    def __call__(self, *args, **more):
        client = os.path.dirname(shutil.which("dockerd")) + "/../bin/docker"  # of the same package, whatever is in /usr/local
        return run([client, "-H", "unix://" + self.SOCKET, *args], **more).decode().strip()

    def serve(self):
        self.proc = subprocess.Popen(
            ["dockerd", "-H", "unix://" + self.SOCKET, "--data-root", self.work + "/docker", "--exec-root", "/run/docker", "--pidfile",
             "/run/docker.pid", "--bridge", "none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false",
             "--storage-driver", "vfs", "--live-restore", "--cgroup-parent", "/" + PARENT, "--containerd", Containerd.SOCKET],
            stdout=subprocess.DEVNULL, stderr=open(self.work + "/docker.log", "a"))
        wait_for_file(self.SOCKET, self.proc)
        self("version")

    def image(self, root):
        self("import", "-", IMAGE, input=run(["tar", "-C", root, "-c", "."]))

    def start(self, name, *more):
        """-> its id"""
        return self("run", "-d", "--name", name, "--network", "none", *more, IMAGE, *BUSY)

    def kill(self):
        if self.proc:
            self.proc.kill()
            self.proc.wait()
            self.proc = None
            for path in (self.SOCKET, "/run/docker.pid"):
                if os.path.exists(path):
                    os.unlink(path)

    def end(self):
        if self.proc:
            try:
                self("rm", "-f", *self("ps", "-a", "-q").split())
            except RuntimeError:
                pass
        self.kill()


def unmount(folder):
    """What the runtimes leave mounted below the folder."""
    with open("/proc/self/mountinfo") as f:
        at = [line.split()[4] for line in f]
    for path in reversed([p for p in at if p.startswith(folder + "/")]):
        subprocess.run(["umount", "-l", path], stderr=subprocess.DEVNULL)


MADE_ABOVE = ("libpod_parent/conmon", "libpod_parent", "kubepods/burstable", "kubepods")  # by Podman and runc


def remove_groups(names):
    """The control groups that the runtimes leave, where they are empty, and those above that they made for them."""
    found = [folder for name in names for top in glob.glob("/sys/fs/cgroup/" + name) + glob.glob("/sys/fs/cgroup/*/" + name)
             for folder, _, _ in sorted(os.walk(top), reverse=True)]
    above = [folder for name in MADE_ABOVE for folder in glob.glob("/sys/fs/cgroup/" + name) + glob.glob("/sys/fs/cgroup/*/" + name)]
    for folder in found + above:
        try:
            os.rmdir(folder)
        except OSError:
            pass
