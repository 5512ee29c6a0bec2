# SPDX-License-Identifier: Apache-2.0
"""What a test in Python begins with, as one in sh does with tap.sh:

    from lib.common import *  # noqa: F403

BUILD: the folder of the build, argument 1. FUSEE: its program. HERE: tests/run. TOP: the repository. LONG: is this the
tier long? tap: its results. until(), within(), pause(): evidence.py. Then modules of Python's library, and of tests/run/lib and
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
