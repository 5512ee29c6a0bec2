# SPDX-License-Identifier: Apache-2.0
"""Makes modules of WebAssembly, whose functions have one number as parameter and as result."""

I32 = b"\x7f"


def number(n):
    """LEB128, unsigned."""
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes(out) + bytes([n])


def signed(n):
    """LEB128 of a number that is not negative, with its sign."""
    out = bytearray()
    while n > 0x3F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes(out) + bytes([n])


def text(s):
    return number(len(s.encode())) + s.encode()


def vector(items):
    return number(len(items)) + b"".join(items)


def section(i, content):
    return bytes([i]) + number(len(content)) + content


# code, to be joined
PARAMETER = b"\x20\x00"


def constant(n):
    return b"\x41" + signed(n)


def call(f):
    return b"\x10" + number(f)


def plus(n):
    return constant(n) + b"\x6a"


def call_if_0(f):
    """if (parameter == 0) f(0)"""
    return PARAMETER + b"\x45\x04\x40" + constant(0) + call(f) + b"\x1a\x0b"


def work():
    """A loop of as many turns as the parameter says: its result depends on each."""
    x, step = b"\x01", b"\x20\x01" + constant(31) + b"\x6c" + PARAMETER + b"\x6a\x21\x01"
    less = PARAMETER + constant(1) + b"\x6b\x22\x00"
    return x + I32, b"\x03\x40" + step + less + constant(0) + b"\x4a\x0d\x00\x0b\x20\x01"


def for_ever(f):
    """Calls f(3000) again and again."""
    return b"\x03\x40" + constant(3000) + call(f) + b"\x1a\x0c\x00\x0b" + constant(0)


def calls(f):
    """Calls f as many times as the parameter says: most of the time is where functions begin and end."""
    again = PARAMETER + constant(1) + b"\x6b\x22\x00" + constant(0) + b"\x4a\x0d\x00\x0b"
    return b"\x03\x40" + PARAMETER + call(f) + b"\x1a" + again + PARAMETER


def module(imported, functions, exported, names=None, of=""):
    """imported: [(module, name)]; functions: [code, or (locals, code)]; exported: {name: function}; names: {function: name},
    None: there is no such section; of: the module's name. Numbers of functions begin with those that are imported."""
    bodies = []
    for f in functions:
        local, code = f if isinstance(f, tuple) else (b"", f)
        body = (number(1) + number(1) + local[-1:] if local else number(0)) + code + b"\x0b"
        bodies.append(number(len(body)) + body)
    out = b"\0asm\1\0\0\0" + section(1, vector([b"\x60" + vector([I32]) + vector([I32])]))
    if imported:
        out += section(2, vector([text(m) + text(n) + b"\0" + number(0) for m, n in imported]))
    out += section(3, vector([number(0)] * len(functions)))
    out += section(7, vector([text(n) + b"\0" + number(f) for n, f in exported.items()]))
    out += section(10, vector(bodies))
    if names is not None:
        known = section(0, text(of)) + section(1, vector([number(f) + text(n) for f, n in sorted(names.items())]))
        out += section(0, text("name") + known)
    return out
