# SPDX-License-Identifier: Apache-2.0
"""Parca's DebuginfoService and ProfileStoreService, for an interpreter that has grpcio and protobuf of PyPI, which python() makes once in a
venv of the build's. "parca_server.py FOLDER" prints its port. One port speaks gRPC-web over HTTP/1.1, also over TLS (FOLDER/ca.pem), and,
to grpcio's own server, gRPC over HTTP/2; a PUT to /signed/BUILDID is what a signed URL leads to. FOLDER/log has a line of JSON for each
call; uploads are kept as FOLDER/BUILDID. FOLDER/mode says what it answers: {"strategy": "GRPC" or "SIGNED_URL", "should": {build id:
reason why not}, METHOD: {build id or "": [status, text]}, "hang": METHOD, "once": true: a status is answered once}."""
import http.server
import json
import os
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import urllib.parse

import venvs

HERE = os.path.dirname(os.path.abspath(__file__))
PROTO = os.path.join(HERE, "..", "..", "lib")
PACKAGES = ["grpcio>=1.60", "grpcio-tools>=1.60", "protobuf>=5"]
SERVICE = "parca.debuginfo.v1alpha1.DebuginfoService"


def python(build):
    """-> the interpreter that has them, or None and why there is none."""
    return venvs.python(build, "parca", ("grpc", "grpc_tools.protoc", "google.protobuf"), PACKAGES)


class Refused(Exception):
    """code, text"""


class Service:
    def __init__(self, folder, port, pb):
        self.folder, self.port, self.pb = folder, port, pb
        self.lock = threading.Lock()
        self.uploads, self.sizes, self.answered = {}, {}, set()

    def mode(self):
        with open(os.path.join(self.folder, "mode")) as f:
            return json.load(f)

    def log(self, method, **facts):
        with self.lock, open(os.path.join(self.folder, "log"), "a") as f:
            f.write(json.dumps(dict(facts, method=method, time=time.time())) + "\n")

    def check(self, method, build_id):
        """Hangs or raises what the mode says."""
        mode = self.mode()
        while mode.get("hang") == method:
            time.sleep(0.1)
            mode = self.mode()
        said = mode.get(method, {})
        status = said.get(build_id, said.get(""))
        if status and not (mode.get("once") and (method, build_id) in self.answered):
            self.answered.add((method, build_id))
            raise Refused(*status)

    def keep(self, build_id, chunks):
        """-> bytes; a part of an upload is not kept. grpc's iterator may end in the same way at the end of a stream and
        when the client breaks it off."""
        path, size = os.path.join(self.folder, build_id), 0
        with open(path + ".part", "wb") as f:
            for chunk in chunks:
                size += f.write(chunk)
        if size != self.sizes.get(build_id):
            raise ConnectionError("%d bytes of %s" % (size, self.sizes.get(build_id)))
        os.rename(path + ".part", path)
        return size

    # ---- the methods ----

    def ShouldInitiateUpload(self, q):
        self.log("ShouldInitiateUpload", id=q.build_id, type=q.type, id_type=q.build_id_type)
        self.check("ShouldInitiateUpload", q.build_id)
        why = self.mode().get("should", {}).get(q.build_id)
        return self.pb.ShouldInitiateUploadResponse(should_initiate_upload=not why, reason=why or "it is new")

    def InitiateUpload(self, q):
        self.sizes[q.build_id] = q.size
        self.log("InitiateUpload", id=q.build_id, size=q.size, hash=q.hash, type=q.type, id_type=q.build_id_type)
        self.check("InitiateUpload", q.build_id)
        upload = "upload-%d" % len(self.uploads)
        self.uploads[upload] = q.build_id
        strategy = self.mode().get("strategy", "GRPC")
        url = "http://127.0.0.1:%d/signed/%s?signature=x%%2Fy" % (self.port, q.build_id)
        url = self.mode().get("url") or (url if strategy == "SIGNED_URL" else "")
        return self.pb.InitiateUploadResponse(upload_instructions=self.pb.Instructions(
            build_id=q.build_id, upload_id=upload, upload_strategy=strategy, signed_url=url))

    def MarkUploadFinished(self, q):
        self.log("MarkUploadFinished", id=q.build_id, right=self.uploads.get(q.upload_id) == q.build_id)
        self.check("MarkUploadFinished", q.build_id)
        return self.pb.MarkUploadFinishedResponse()

    def Upload(self, requests, context):
        first = next(requests)
        build_id = first.info.build_id
        started = time.time()
        largest = 0

        def chunks():
            nonlocal largest
            for q in requests:
                largest = max(largest, len(q.chunk_data))
                yield q.chunk_data
        self.log("UploadStarted", id=build_id, right=self.uploads.get(first.info.upload_id) == build_id,
                 token=dict(context.invocation_metadata()).get("authorization"))
        self.check("Upload", build_id)
        size = self.keep(build_id, chunks())
        self.log("Upload", id=build_id, size=size, largest=largest, seconds=time.time() - started)
        return self.pb.UploadResponse(build_id=build_id, size=size)


# ---- gRPC-web ----

def frame(flags, message):
    return struct.pack(">BI", flags, len(message)) + message


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    service = None

    def log_message(self, *args):
        pass

    def answer(self, status, body, headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        method = self.path.rsplit("/", 1)[1]
        web = [("Content-Type", "application/grpc-web+proto")]
        self.service.log("Web", token=self.headers.get("Authorization"))
        if method == "WriteRaw":
            self.service.log("WriteRaw")
            self.answer(200, frame(0, b"") + frame(0x80, b"grpc-status: 0\r\n"), web)
            return
        flags, length = struct.unpack(">BI", body[:5])
        assert flags == 0 and length == len(body) - 5 and self.path == "/%s/%s" % (SERVICE, method), (self.path, body)
        q = getattr(self.service.pb, method + "Request").FromString(body[5:])
        try:
            a = getattr(self.service, method)(q)
        except Refused as why:
            self.answer(200, b"", [*web, ("Grpc-Status", str(why.args[0])), ("Grpc-Message", urllib.parse.quote(why.args[1]))])
            return
        self.answer(200, frame(0, a.SerializeToString()) + frame(0x80, b"grpc-status: 0\r\n"), web)

    def do_PUT(self):
        build_id = urllib.parse.urlsplit(self.path).path.rsplit("/", 1)[1]
        left = int(self.headers["Content-Length"])
        self.service.log("PutStarted", id=build_id, path=self.path, headers=dict(self.headers))
        try:
            self.service.check("Put", build_id)
        except Refused as why:
            self.close_connection = True
            self.answer(why.args[0], why.args[1].encode())
            return

        def chunks():
            nonlocal left
            while left:
                got = self.rfile.read(min(left, 65536))
                if not got:
                    raise ConnectionError("a part of a file")
                left -= len(got)
                yield got

        try:
            size = self.service.keep(build_id, chunks())
        except ConnectionError:
            self.close_connection = True
            return
        self.service.log("Put", id=build_id, size=size)
        self.answer(200, b"")


# ---- one port ----

def copy(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
    except OSError:
        pass
    for s in (a, b):
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def serve(client, grpc_port, tls):
    client.settimeout(600)
    try:
        first = client.recv(4, socket.MSG_PEEK)
        if first[:1] == b"\x16":
            client = tls.wrap_socket(client, server_side=True)
        if first == b"PRI ":
            other = socket.create_connection(("127.0.0.1", grpc_port))
            threading.Thread(target=copy, args=(other, client), daemon=True).start()
            copy(client, other)
        else:
            Handler(client, ("", 0), None)
    except OSError:
        pass
    finally:
        client.close()


def start_grpc(service):
    import grpc
    from concurrent import futures

    def upload(requests, context):
        try:
            return service.Upload(requests, context)
        except Refused as why:
            code = [c for c in grpc.StatusCode if c.value[0] == why.args[0]][0]
            context.abort(code, why.args[1])

    pb = service.pb
    handler = grpc.stream_unary_rpc_method_handler(upload, request_deserializer=pb.UploadRequest.FromString,
                                                   response_serializer=pb.UploadResponse.SerializeToString)
    server = grpc.server(futures.ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {"Upload": handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, port


def certificate(folder):
    """-> the TLS side of the port; FOLDER/ca.pem is what a client is to trust"""
    key, cert = (os.path.join(folder, name) for name in ("key.pem", "ca.pem"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj",
                    "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(cert, key)
    return tls


def main(folder):
    from grpc_tools import protoc
    if protoc.main(["protoc", "-I" + PROTO, "--python_out=" + folder, os.path.join(PROTO, "debuginfo.proto")]):
        sys.exit("protoc failed")
    sys.path.insert(0, folder)
    import debuginfo_pb2
    listener = socket.create_server(("127.0.0.1", 0))
    Handler.service = Service(folder, listener.getsockname()[1], debuginfo_pb2)
    server, grpc_port = start_grpc(Handler.service)
    tls = certificate(folder)
    print(listener.getsockname()[1], flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client, grpc_port, tls), daemon=True).start()


if __name__ == "__main__":
    main(sys.argv[1])
