# SPDX-License-Identifier: Apache-2.0
"""A small API server for pods: TLS, tokens and client certificates, list with limit and continue, watch with
bookmarks, and the faults that a test plans."""
import http.server
import json
import os
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse

TOKEN = "token-of-the-test"
CLIENT = "fusee-client"
BOOKMARK = 0.1  # seconds; a real server has 60


def certificates(folder):
    """ca.crt and other.crt; server.crt for 127.0.0.1, client.crt for CLIENT, both by ca.crt."""
    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    for name in ("ca", "other"):
        openssl("req", "-x509", *key, "-keyout", name + ".key", "-out", name + ".crt", "-days", "2", "-subj", "/CN=" + name)
    with open(os.path.join(folder, "names"), "w") as f:
        f.write("subjectAltName=IP:127.0.0.1\n")
    for name, subject in (("server", "server"), ("client", CLIENT)):
        openssl("req", *key, "-keyout", name + ".key", "-out", name + ".csr", "-subj", "/CN=" + subject)
        openssl("x509", "-req", "-in", name + ".csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                "-extfile", "names", "-out", name + ".crt")


def status(code, message, **more):
    return dict({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "code": code}, **more)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        self.request = self.server.api.context.wrap_socket(self.request, server_side=True)
        self.server.api.connections.append(self.request)
        super().setup()

    def log_message(self, *_):
        pass

    def answer(self, code, body, **headers):
        data = json.dumps(body).encode()
        self.api.log(self.path, code)
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.api = self.server.api
        parts = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(parts.query))
        given = self.headers.get("Authorization")
        subject = dict(x[0] for x in (self.request.getpeercert() or {}).get("subject", ()))
        if subject.get("commonName") != CLIENT and given != "Bearer " + self.api.token:
            if given == "Bearer weak":
                return self.answer(403, status(403, 'pods is forbidden: User "weak" cannot list resource "pods"'))
            return self.answer(401, status(401, "Unauthorized"))
        if parts.path == "/pods" and self.api.kubelet:
            if self.api.nonsense:
                return self.answer(200, self.api.nonsense)
            with self.api.changed:
                pods = [p for _, p in sorted(self.api.pods.items()) if p["spec"].get("nodeName") == self.api.kubelet]
            return self.answer(200, {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": pods or None})
        if parts.path != "/api/v1/pods" or self.api.kubelet:
            return self.answer(404, status(404, "not found"))
        if not self.api.allows("watch" if "watch" in query else "list", parts.path.split("/")[-1]):
            return self.answer(403, status(403, "pods is forbidden: no rule of the role allows it"))
        self.faulty = given is not None  # the faults that are planned are for clients with a token
        if self.faulty and self.api.busy > 0:
            self.api.busy -= 1
            return self.answer(429, status(429, "too many requests"), Retry_After="1")
        if "watch" in query:
            return self.watch(query)
        return self.list(query)

    def list(self, query):
        api, node = self.api, query["fieldSelector"].split("=")[1]
        with api.changed:
            if self.faulty and query.get("continue") and api.expire_next:
                api.expire_next = False
                return self.answer(410, status(410, "The provided continue parameter is too old"))
            pods = [p for _, p in sorted(api.pods.items()) if p["spec"].get("nodeName") == node]
            version = api.version
        first = int(query.get("continue", "page 0").split()[1])
        limit = int(query.get("limit", 0)) or len(pods)
        more = "page %d" % (first + limit) if first + limit < len(pods) else ""
        return self.answer(200, {"kind": "PodList", "apiVersion": "v1", "items": pods[first:first + limit],
                                 "metadata": {"resourceVersion": str(version), "continue": more}})

    def chunk(self, data, part=1.0):
        whole = b"%x\r\n%s\r\n" % (len(data), data)
        self.wfile.write(whole[:int(len(whole) * part)])

    def event(self, kind, pod, part=1.0):
        self.chunk(json.dumps({"type": kind, "object": pod}).encode() + b"\n", part)

    def watch(self, query):
        api, node, version = self.api, query["fieldSelector"].split("=")[1], int(query["resourceVersion"])
        end = time.monotonic() + int(query.get("timeoutSeconds", 60))
        api.log(self.path, 200)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with api.changed:
            epoch = api.epoch
        while time.monotonic() < end:
            with api.changed:
                if api.version == version:
                    api.changed.wait(BOOKMARK)
                if epoch != api.epoch:
                    break
                if version < api.oldest:
                    self.event("ERROR", status(410, "too old resource version", reason="Expired"))
                    break
                events = [e for e in api.events if e[0] > version]
                mute = api.mute
                mark = api.version
            if mute:  # the connection stays, and nothing comes any more
                api.muted.append(self.path)
                api.unmute.wait(30)
                break
            for version, kind, pod in events:
                if pod["spec"].get("nodeName") != node:
                    continue
                if self.faulty and api.cut:
                    api.cut = False
                    self.event(kind, pod, 0.5)
                    self.request.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True
                    return
                self.event(kind, pod)
            if not events:
                version = mark
                self.event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(version)},
                                        "spec": {"containers": None}})
        self.chunk(b"")


class Api:
    def __init__(self, folder, rules=None, kubelet=None):
        """rules: of a ClusterRole, which are kept; None: all is allowed. kubelet: the node whose kubelet this is, and no
        API server"""
        self.rules, self.used, self.kubelet, self.nonsense = rules, set(), kubelet, None
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(os.path.join(folder, "server.crt"), os.path.join(folder, "server.key"))
        self.context.load_verify_locations(os.path.join(folder, "ca.crt"))
        self.context.verify_mode = ssl.CERT_OPTIONAL
        self.changed = threading.Condition()
        self.pods, self.events, self.requests, self.muted, self.connections = {}, [], [], [], []
        self.version, self.oldest, self.epoch, self.busy = 100, 0, 0, 0
        self.token, self.cut, self.mute, self.expire_next = TOKEN, False, False, False
        self.unmute = threading.Event()
        self.port = 0
        self.resume()
        self.url = "https://127.0.0.1:%d" % self.port

    def resume(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.server.daemon_threads = True
        self.server.api = self
        self.server.handle_error = lambda *_: None  # handshakes that are refused, connections that are cut
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, args=(0.1,), daemon=True).start()

    def pause(self):
        """Nothing listens any more; connections end."""
        self.server.shutdown()
        self.server.server_close()
        self.end_watches()
        for connection in self.connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.connections = []

    def allows(self, verb, resource):
        self.used.add((resource, verb))
        return self.rules is None or any(verb in r["verbs"] and resource in r["resources"] and "" in r["apiGroups"]
                                         for r in self.rules)

    def log(self, path, code):
        self.requests.append((time.monotonic(), path, code))

    def change(self, kind, pod):
        with self.changed:
            self.version += 1
            pod["metadata"]["resourceVersion"] = str(self.version)
            key = pod["metadata"]["namespace"], pod["metadata"]["name"]
            if kind == "DELETED":
                self.pods.pop(key, None)
            else:
                self.pods[key] = pod
            self.events.append((self.version, kind, json.loads(json.dumps(pod))))
            self.changed.notify_all()

    def forget(self):
        """All versions until now are too old, and watches end."""
        with self.changed:
            self.oldest, self.events = self.version + 1, []
            self.version += 2
            self.epoch += 1
            self.changed.notify_all()

    def end_watches(self):
        with self.changed:
            self.epoch += 1
            self.changed.notify_all()

    def close(self):
        self.unmute.set()
        self.pause()
