# SPDX-License-Identifier: Apache-2.0
"""What a test in Python begins with, as one in sh does with tap.sh:

    from lib.common import *  # noqa: F403

BUILD: the folder of the build, argument 1. FUSEE: its program. HERE: tests/run. TOP: the repository. LONG: is this the
tier long? tap: its results. until(), within(), pause(): evidence.py. Files in one call, and a new folder. Then modules of Python's library, and of tests/run/lib and
tests/accuracy, whose other modules can be imported from here on."""
import collections  # noqa: F401
import contextlib  # noqa: F401
import ctypes  # noqa: F401
import glob  # noqa: F401
import gzip  # noqa: F401
import json  # noqa: F401
import os
import random  # noqa: F401
import re  # noqa: F401
import shutil  # noqa: F401
import signal  # noqa: F401
import socket  # noqa: F401
import struct  # noqa: F401
import subprocess  # noqa: F401
import sys
import tempfile  # noqa: F401
import threading  # noqa: F401
import time  # noqa: F401
import urllib.request  # noqa: F401

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(HERE, "lib"), os.path.join(HERE, "lib", "hostile"), os.path.join(TOP, "tests", "accuracy")]
import evidence  # noqa: E402,F401
import pprof  # noqa: E402,F401
from evidence import pause, until, within  # noqa: E402,F401
from tap import Tap  # noqa: E402

BUILD = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build")
FUSEE = os.path.join(BUILD, "fusee")
LONG = bool(os.environ.get("FUSEE_TEST_LONG"))
tap = Tap()


def text_of(path):
    with open(path, errors="replace") as f:
        return f.read()


def bytes_of(path):
    with open(path, "rb") as f:
        return f.read()


def json_of(path):
    with open(path) as f:
        return json.load(f)


def write_text(path, text):
    """-> the path"""
    with open(path, "w") as f:
        f.write(text)
    return path


@contextlib.contextmanager
def new_folder(name):
    """That each user can look into, by its real path; it is gone in the end."""
    path = os.path.realpath(tempfile.mkdtemp(prefix="fusee-%s-" % name))
    os.chmod(path, 0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def compiled(path, source, *flags, compiler="gcc"):
    """Compiles a text in C, or the file of tests/run/lib that has this name. -> the path of the program"""
    given = os.path.join(HERE, "lib", source)
    source = given if "\n" not in source and os.path.exists(given) else write_text(path + ".c", source)
    subprocess.run([compiler, "-O1", "-o", path, source, *flags], check=True)
    return path
