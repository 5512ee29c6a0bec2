#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""s3_server.py DIR: a bucket "profiles" as of S3, which checks signatures by its own reading of AWS' rules, and fails as it is asked to.

Listens on 127.0.0.1, prints its port and serves until its stdin ends. DIR/log has a JSON line for each request; objects are files below
DIR/objects. The key is AKTEST with the secret "secret/of+AKTEST", and the session token that DIR/token has, if there is that file. A path
may begin with /storage. DIR/faults has lines "KIND TIMES STATUS CODE [HEADER:VALUE ..]": the next requests of that kind (put, begin, part, partN,
complete, abort, list, get) are answered so. CODE "-": the body is a text and no XML; "truncated": the body is white space and ends too early;
"hang": no answer comes; "reset": the connection ends; "vanish": the object is removed before the request is looked at; "all": a range is ignored.
A line "clock SECONDS" sets the server's clock so much ahead. A list has the number of names that DIR/page has in a page, or 1,000."""
import calendar
import email.utils
import hashlib
import hmac
import http.server
import json
import os
import re
import sys
import threading
import time
import urllib.parse

FOLDER = sys.argv[1]
ID, SECRET = "AKTEST", "secret/of+AKTEST"
MOST_SKEW = 900
LOCK = threading.Lock()


class State:
    uploads = {}
    used = {}


class Refused(Exception):
    def __init__(self, status, code, headers=()):
        super().__init__(code)
        self.status, self.code, self.headers = status, code, dict(headers)


def lines(name):
    try:
        with open(os.path.join(FOLDER, name), encoding="utf-8") as f:
            return [line.split() for line in f if line.strip()]
    except FileNotFoundError:
        return []


def clock():
    return time.time() + sum(float(words[1]) for words in lines("faults") if words[0] == "clock")


def fault(kinds):
    """The fault for a request of one of these kinds, or None."""
    with LOCK:
        for words in lines("faults"):
            key = " ".join(words)
            if words[0] in kinds and State.used.get(key, 0) < int(words[1]):
                State.used[key] = State.used.get(key, 0) + 1
                return words
    return None


def digest(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signature(method, path, query, names, headers, body_hash, when, scope):
    """As the manual of AWS describes it, from what was received."""
    pairs = sorted(tuple(p.split("=", 1)) if "=" in p else (p, "") for p in query.split("&") if p)
    canonical = "\n".join([method, path, "&".join("%s=%s" % p for p in pairs),
                           "".join("%s:%s\n" % (n, re.sub(" +", " ", headers.get(n, "").strip())) for n in names),
                           ";".join(names), body_hash])
    to_sign = "\n".join(["AWS4-HMAC-SHA256", when, "/".join(scope), hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + SECRET).encode()
    for part in scope:
        key = digest(key, part)
    return digest(key, to_sign).hex()


def check(method, path, query, headers, body):
    """Raises Refused unless the request is signed as it must be."""
    found = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8}/[^/]+/s3/aws4_request), ?SignedHeaders=([^,]+), ?"
                         r"Signature=([0-9a-f]{64})", headers.get("authorization", ""))
    if not found:
        raise Refused(403, "AccessDenied")
    key, scope, names, got = found.group(1), found.group(2).split("/"), found.group(3).split(";"), found.group(4)
    if key != ID:
        raise Refused(403, "InvalidAccessKeyId")
    if names != sorted(names) or "host" not in names or any(h.startswith("x-amz-") and h not in names for h in headers):
        raise Refused(403, "AccessDenied")
    when = headers.get("x-amz-date", "")
    if not re.fullmatch(r"\d{8}T\d{6}Z", when):
        raise Refused(403, "AccessDenied")
    if abs(calendar.timegm(time.strptime(when, "%Y%m%dT%H%M%SZ")) - clock()) > MOST_SKEW:
        raise Refused(403, "RequestTimeTooSkewed", {"Date": email.utils.formatdate(clock(), usegmt=True)})
    for words in lines("token"):
        if headers.get("x-amz-security-token") != words[0]:
            raise Refused(400, "ExpiredToken")
    if headers.get("x-amz-content-sha256") != hashlib.sha256(body).hexdigest():
        raise Refused(400, "XAmzContentSHA256Mismatch")
    if got != signature(method, path, query, names, headers, headers["x-amz-content-sha256"], when, scope):
        raise Refused(403, "SignatureDoesNotMatch")


def store(key, data):
    path = os.path.join(FOLDER, "objects", key)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    new = os.path.join(FOLDER, "stored.%d" % threading.get_ident())  # an object is there with all its bytes or not at all
    with open(new, "wb") as f:
        f.write(data)
    os.rename(new, path)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def reply(self, status, body="", headers=()):
        self.send_response_only(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def truncated(self, status):
        self.send_response_only(status)
        self.send_header("Content-Length", "100")
        if status == 206:
            self.send_header("Content-Range", "bytes 0-99/100")
        self.end_headers()
        self.wfile.write(b" \n" * 5)
        self.close_connection = True

    def fail(self, status, code, headers=()):
        self.reply(status, "bad gateway\nof a proxy\n" if code == "-" else '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>%s</Code>'
                   "<Message>what the server says</Message><RequestId>1</RequestId></Error>" % code, headers)

    def handle_any(self):
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        headers = {k.lower(): v for k, v in self.headers.items()}
        parameters = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        number = parameters.get("partNumber")
        kind = ("begin" if "uploads" in parameters else "complete") if self.command == "POST" else \
            ("list" if "list-type" in parameters else "get") if self.command == "GET" else "abort" if self.command == "DELETE" else "part" if number else "put"
        with LOCK, open(os.path.join(FOLDER, "log"), "a", encoding="utf-8") as f:
            f.write(json.dumps({"kind": kind, "method": self.command, "path": path, "query": query, "headers": headers}) + "\n")
        try:
            bad = fault({kind, kind + (number or "")})
            if bad and bad[3] in ("hang", "reset"):
                time.sleep(60 if bad[3] == "hang" else 0)
                self.close_connection = True
                self.connection.close()
                return
            if bad and bad[3] == "truncated":
                self.truncated(int(bad[2]))
                return
            if bad and bad[3] == "vanish":
                self.vanish(path)
                bad = None
            if bad and bad[3] == "all":
                del self.headers["Range"]
                bad = None
            if bad:
                raise Refused(int(bad[2]), bad[3], [w.split(":", 1) for w in bad[4:]])
            check(self.command, path, query, headers, body)
            self.do(kind, path, parameters, body)
        except Refused as e:
            self.fail(e.status, e.code, e.headers)

    def do(self, kind, path, parameters, body):
        path = urllib.parse.unquote(path)
        bucket, _, key = (path[len("/storage"):] if path.startswith("/storage/") else path)[1:].partition("/")
        if bucket != "profiles":
            raise Refused(404, "NoSuchBucket")
        if kind == "list":
            self.list(parameters)
            return
        if kind == "get":
            self.get(key)
            return
        upload, tag = parameters.get("uploadId"), '"%s"' % hashlib.md5(body).hexdigest()
        if kind == "put":
            store(key, body)
            self.reply(200, headers={"ETag": tag})
        elif kind == "begin":
            upload = "an/id+%d=" % (len(State.uploads) + 1)
            State.uploads[upload] = (key, {})
            self.reply(200, "<InitiateMultipartUploadResult><UploadId>%s</UploadId></InitiateMultipartUploadResult>" % upload)
        elif State.uploads.get(upload, ("",))[0] != key:
            raise Refused(404, "NoSuchUpload")
        elif kind == "part":
            State.uploads[upload][1][int(parameters["partNumber"])] = (tag, body)
            self.reply(200, headers={"ETag": tag})
        elif kind == "abort":
            del State.uploads[upload]
            self.reply(204)
        else:
            self.complete(upload, key, body.decode())

    def vanish(self, path):
        os.remove(os.path.join(FOLDER, "objects", urllib.parse.unquote(path).split("/", 2)[2]))

    def list(self, q):
        base, prefix, slash = os.path.join(FOLDER, "objects"), q.get("prefix", ""), q.get("delimiter")
        keys = sorted(os.path.relpath(os.path.join(folder, name), base) for folder, _, names in os.walk(base) for name in names)
        keys = [k for k in keys if k.startswith(prefix)]
        if slash:
            keys = sorted({k[:k.index(slash, len(prefix)) + 1] if slash in k[len(prefix):] else k for k in keys})
        most, begin = int((lines("page") or [["1000"]])[0][0]), int(q.get("continuation-token", "t/+=0")[4:])
        page, more = keys[begin:begin + most], begin + most < len(keys)
        quote = urllib.parse.quote_plus if q.get("encoding-type") == "url" else lambda s: s.replace("&", "&amp;").replace("<", "&lt;")
        out = "<IsTruncated>%s</IsTruncated>" % ("true" if more else "false")
        if q.get("encoding-type") == "url":
            out += "<EncodingType>url</EncodingType>"
        if more:
            out += "<NextContinuationToken>t/+=%d</NextContinuationToken>" % (begin + most)
        for k in page:
            out += "<CommonPrefixes><Prefix>%s</Prefix></CommonPrefixes>" % quote(k) if slash and k.endswith(slash) else \
                "<Contents><Key>%s</Key><Size>%d</Size></Contents>" % (quote(k), os.path.getsize(os.path.join(base, k)))
        self.reply(200, '<?xml version="1.0"?><ListBucketResult><Prefix>%s</Prefix>%s</ListBucketResult>' % (quote(prefix), out))

    def get(self, key):
        try:
            with open(os.path.join(FOLDER, "objects", key), "rb") as f:
                data = f.read()
        except (FileNotFoundError, IsADirectoryError):
            raise Refused(404, "NoSuchKey")
        found = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if not found:
            at, end = 0, len(data)
        elif found.group(1):
            at, end = int(found.group(1)), min(int(found.group(2)) + 1, len(data))
        else:
            at, end = max(0, len(data) - int(found.group(2))), len(data)
        if found and at >= end:
            raise Refused(416, "InvalidRange")
        self.send_response_only(206 if found else 200)
        if found:
            self.send_header("Content-Range", "bytes %d-%d/%d" % (at, end - 1, len(data)))
        self.send_header("Content-Length", str(end - at))
        self.end_headers()
        self.wfile.write(data[at:end])

    def complete(self, upload, key, text):
        listed = re.findall("<Part><PartNumber>([0-9]+)</PartNumber><ETag>([^<]*)</ETag></Part>", text)
        parts = State.uploads[upload][1]
        if [(int(n), tag) for n, tag in listed] != [(n, parts[n][0]) for n in sorted(parts)]:
            raise Refused(400, "InvalidPart")
        store(key, b"".join(parts[n][1] for n in sorted(parts)))
        del State.uploads[upload]
        self.reply(200, "<CompleteMultipartUploadResult><Key>%s</Key></CompleteMultipartUploadResult>" % key)

    do_GET = do_PUT = do_POST = do_DELETE = handle_any


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # a client that was killed
            super().handle_error(request, client_address)


def main():
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()


main()
