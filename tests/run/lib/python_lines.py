# SPDX-License-Identifier: Apache-2.0
"""python_lines.py LINES.so [MOST]: holds the decoder of the python unwinder (python_line() of lines.c, as a
shared object) against the interpreter that runs this file: for each instruction of each code object of the
standard library (the first MOST files). Runs on Python 3.8 and later; prints a JSON object."""
import ctypes
import json
import os
import sys
import sysconfig
import warnings

MINOR = sys.version_info[1]


class Lines(ctypes.Structure):
    _fields_ = [("minor", ctypes.c_uint32), ("first_line", ctypes.c_uint32), ("at", ctypes.c_char_p),
                ("n", ctypes.c_uint32)]


def decoder(path):
    f = ctypes.CDLL(path).python_line
    f.argtypes = [ctypes.POINTER(Lines), ctypes.c_uint32]
    f.restype = ctypes.c_uint32
    return f


def own_lines(code):
    """(instruction as the frames of this version have it, line or 0) of each, by the interpreter itself."""
    n = len(code.co_code)
    if MINOR >= 11:
        positions = [p[0] or 0 for p in code.co_positions()]
        by_lines = [0] * (n // 2)
        for start, end, line in code.co_lines():
            for i in range(start // 2, end // 2):
                by_lines[i] = line or 0
        assert positions == by_lines, code
        return enumerate(positions)
    if MINOR == 10:
        return ((i // 2, line or 0) for start, end, line in code.co_lines() for i in range(start, end, 2))
    f = ctypes.pythonapi.PyCode_Addr2Line
    f.argtypes = [ctypes.py_object, ctypes.c_int]
    return ((i, f(code, i)) for i in range(0, n, 2))


def table_of(code):
    return code.co_linetable if MINOR >= 10 else code.co_lnotab


def all_codes(code):
    yield code
    for const in code.co_consts:
        if hasattr(const, "co_code"):
            yield from all_codes(const)


def sources():
    for root in sorted({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}):
        for dir, dirs, files in os.walk(root):
            dirs[:] = sorted(d for d in dirs if d not in ("site-packages", "dist-packages", "__pycache__"))
            for name in sorted(files):
                if name.endswith(".py"):
                    yield os.path.join(dir, name)


def compiled(path):
    try:
        with open(path, "rb") as f:
            return compile(f.read(), path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, UnicodeDecodeError):  # files that are there to be wrong
        return None


def main():
    warnings.simplefilter("ignore")
    sys.setrecursionlimit(10000)
    line_at = decoder(sys.argv[1])
    most = int(sys.argv[2]) if len(sys.argv) > 2 else 1 << 30
    out = {"version": "%d.%d.%d" % sys.version_info[:3], "files": 0, "codes": 0, "instructions": 0,
           "wrong": 0, "without": 0, "first": ""}
    for path in sources():
        top = compiled(path) if out["files"] < most else None
        if not top:
            continue
        out["files"] += 1
        for code in all_codes(top):
            table = table_of(code)
            lines = Lines(MINOR, code.co_firstlineno, table, len(table))
            out["codes"] += 1
            for at, line in own_lines(code):
                found = line_at(lines, at)
                out["instructions"] += 1
                out["without"] += not line
                if found != line:
                    out["wrong"] += 1
                    out["first"] = out["first"] or "%s %s at %d: %d, and not %d" % (
                        path, code.co_name, at, found, line)
    print(json.dumps(out))


main()
