# SPDX-License-Identifier: Apache-2.0
"""What tests of discover.kubernetes share: a server of pods (kube_api.py, or another), pods in control groups below one
folder, and an agent that labels their processes."""
import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import kube_api
import pods
from agent import build_burners, pprof
from evidence import until

HERE = os.path.dirname(os.path.abspath(__file__))
NODE = "node-1"


def lacks(build):
    """Why it cannot be tried here, or None."""
    if os.geteuid():
        return "needs root"
    if not os.path.exists(build + "/plugins/kubernetes.so"):
        return "the plugin was not built: headers of libcurl, yajl or libyaml are not installed"
    if not shutil.which("openssl"):
        return "no openssl (apt install openssl)"
    if subprocess.run([sys.executable, os.path.join(HERE, "perf_open")], stdout=subprocess.DEVNULL).returncode:
        return "perf_event_open is refused here"
    return None


def write(path, text):
    with open(path + ".new", "w") as f:
        f.write(text)
    os.rename(path + ".new", path)


def main(tap, what, why, run, *programs):
    """run(folder, folder of control groups), with certificates, a token and burners of these names; or a skip, and why."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    tree = None if why else pods.find_tree()
    if not tree:
        tap.skip(what, why or "no hierarchy of control groups that is writable")
        tap.end()
    work = tempfile.mkdtemp(prefix="fusee-kube-")
    os.chmod(work, 0o755)
    try:
        kube_api.certificates(work)
        write(work + "/token", kube_api.TOKEN + "\n")
        build_burners(work, *programs)
        run(work, tree)
    finally:
        shutil.rmtree(work, ignore_errors=True)
        pods.remove_tree(tree)
    tap.end()


class World:
    def __init__(self, work, tree, api):
        self.work, self.tree, self.api = work, tree, api
        self.pods, self.agent = [], None

    def pod(self, name, **more):
        pod = pods.Pod(self.api, NODE, name, **more)
        self.pods.append(pod)
        return pod

    def start(self, pod):
        pod.start(self.tree, self.work + "/fusee-kube")

    def labels(self, pod):
        """Of the pod's process, as the agent has them now."""
        for t in self.agent.ask("targets")["targets"]:
            if t["labels"].get("container_id") == pod.id:
                return t["labels"]
        return {}

    def until(self, of, seconds=60, **labels):
        return until(lambda: all(self.labels(of).get(k) == v for k, v in labels.items()), seconds)

    def discovery(self):
        return next(d for d in self.agent.ask("status")["discoveries"] if "kubernetes" in d["name"])

    def targets(self):
        return self.discovery()["targets"]

    def windows(self, pod):
        """The labels of each sample of the pod's process, by window."""
        return [[s.labels for s in pprof.read(path).samples if s.labels.get("container_id") == pod.id]
                for path in sorted(glob.glob(self.work + "/out/*.pb.gz"))]

    def samples(self, pod):
        return [r for rows in self.windows(pod) for r in rows]

    def said(self):
        return self.agent.said()

    def end(self):
        for pod in self.pods:
            pod.end()
        if self.agent:
            self.agent.stop()
        self.api.close()
