# SPDX-License-Identifier: Apache-2.0
"""Pods for tests: an object at an API server (kube_api.py), and a process in a control group of the kubelet's path
forms."""
import os
import subprocess
import time
import uuid


def find_tree():
    """A hierarchy that we may make groups in; a folder of our own in it."""
    for line in open("/proc/self/mountinfo"):
        words, kind = line.split(" - ")
        at, (kind, _, options) = words.split()[4], kind.split()[:3]
        if kind == "cgroup2" or kind == "cgroup" and {"pids", "name=systemd"} & set(options.split(",")):
            try:
                os.mkdir("%s/fusee-kube-%d" % (at, os.getpid()))
                return "%s/fusee-kube-%d" % (at, os.getpid())
            except OSError:
                pass
    return None


def remove_tree(tree):
    for folder, _, _ in sorted(os.walk(tree), reverse=True):
        for _ in range(20):
            try:
                os.rmdir(folder)
                break
            except OSError:
                time.sleep(0.05)


def group_of(tree, uid, ident, systemd):
    """The control group of a container of a pod, made in the form of one of the kubelet's drivers."""
    if systemd:
        group = "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod%s.slice/cri-containerd-%s.scope" % (
            uid.replace("-", "_"), ident)
    else:
        group = "kubepods/burstable/pod%s/%s" % (uid, ident)
    group = os.path.join(tree, group)
    os.makedirs(group)
    return group


def start_in(group, *command):
    return subprocess.Popen(["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', group, *command])


class Pod:
    """A pod at the API server, with a process in the control group of its container."""

    def __init__(self, api, node, name, systemd=False, **metadata):
        self.api, self.name, self.systemd = api, name, systemd
        self.uid, self.id = str(uuid.uuid4()), os.urandom(32).hex()
        self.object = {"metadata": dict({"name": name, "namespace": "shop", "uid": self.uid}, **metadata),
                       "spec": {"nodeName": node, "containers": [{"name": "main", "image": "img:1"}]},
                       "status": {"phase": "Pending"}}
        self.proc = None

    def put(self, kind="MODIFIED"):
        self.api.change(kind, self.object)

    def report(self, ident=None, where="containerStatuses", name="main"):
        """What the kubelet reports once the container runs."""
        self.object["status"][where] = [{"name": name, "containerID": "containerd://" + (ident or self.id)}]
        self.put()

    def start(self, tree, burner):
        self.proc = start_in(group_of(tree, self.uid, self.id, self.systemd), burner)

    def end(self):
        if self.proc:
            self.proc.kill()
            self.proc.wait()
            self.proc = None
