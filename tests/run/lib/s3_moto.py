#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""moto's server from PyPI, a bucket that checks signatures by botocore's code, in a venv of the build's, made once. As a program, for the
interpreter of that venv: "s3_moto.py make URL BUCKET" makes a bucket and a user, and prints the user's keys, two words, whose signatures the
server checks from then on; "s3_moto.py fetch URL BUCKET FOLDER" gets all objects; "s3_moto.py uploads URL BUCKET" prints the number of uploads
that have not ended. The last two take the keys of the environment."""
import http.client
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request

import venvs
from evidence import within

START_SECONDS = 240
PORTS = 5  # that are tried
KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


def python(build):
    """-> the interpreter that has it, or None and why there is none."""
    return venvs.python(build, "moto", ("moto.server", "boto3"), ("moto[server,s3]>=5",))


class Moto:
    """A server on 127.0.0.1, which ends with stop()."""

    def __init__(self, interpreter, log):
        self.interpreter = interpreter
        for _ in range(PORTS):
            if self.starts(log):
                return
            ended = self.proc.poll() is not None
            self.stop()
            if not ended:
                break
        raise RuntimeError("moto did not start")

    def starts(self, log):
        with socket.create_server(("127.0.0.1", 0)) as s:
            port = s.getsockname()[1]  # which another process may take before the server does
        self.url = "http://127.0.0.1:%d" % port
        environment = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
        self.proc = subprocess.Popen([self.interpreter, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], stdin=subprocess.DEVNULL,
                                     stdout=log, stderr=subprocess.STDOUT, env=environment)
        end = time.monotonic() + within(START_SECONDS)
        while time.monotonic() < end and self.proc.poll() is None:
            try:
                urllib.request.urlopen(self.url + "/moto-api/data.json", timeout=30).close()
                return self.proc.poll() is None
            except (OSError, http.client.HTTPException):
                time.sleep(0.2)
        return False

    def do(self, what, *more, **environment):
        """What this file prints as a program."""
        return subprocess.run([self.interpreter, os.path.abspath(__file__), what, self.url, *more], check=True, stdout=subprocess.PIPE,
                              text=True, env=dict(os.environ, **environment)).stdout

    def stop(self):
        self.proc.kill()
        self.proc.wait()


def client(service, url):
    import boto3
    from botocore.config import Config
    keys = [os.environ.get(k) for k in KEYS]
    return boto3.client(service, endpoint_url=url, region_name="us-east-1", aws_access_key_id=keys[0] or "any",
                        aws_secret_access_key=keys[1] or "any", aws_session_token=keys[2], config=Config(s3={"addressing_style": "path"}))


def make(url, bucket):
    iam = client("iam", url)
    client("s3", url).create_bucket(Bucket=bucket)
    iam.create_user(UserName="fusee")
    rights = [{"Effect": "Allow", "Action": "s3:*", "Resource": ["arn:aws:s3:::" + bucket, "arn:aws:s3:::%s/*" % bucket]}]
    iam.put_user_policy(UserName="fusee", PolicyName="all", PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": rights}))
    key = iam.create_access_key(UserName="fusee")["AccessKey"]
    reset = urllib.request.Request(url + "/moto-api/reset-auth", data=b"0", method="POST", headers={"Content-Type": "text/plain"})
    urllib.request.urlopen(reset).close()
    print(key["AccessKeyId"], key["SecretAccessKey"])


def fetch(url, bucket, folder):
    s3 = client("s3", url)
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for item in page.get("Contents", []):
            path = os.path.join(folder, item["Key"])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            s3.download_file(bucket, item["Key"], path)


def uploads(url, bucket):
    print(len(client("s3", url).list_multipart_uploads(Bucket=bucket).get("Uploads", [])))


if __name__ == "__main__":
    {"make": make, "fetch": fetch, "uploads": uploads}[sys.argv[1]](*sys.argv[2:])
