# SPDX-License-Identifier: Apache-2.0
"""The files of the tree, and what a C source consists of."""
import os
import re
import subprocess

CODE = (".c", ".h", ".cc", ".cpp", ".S", ".py", ".sh", ".go", ".rs", ".lua", ".js", ".mjs", ".css",
        ".html", ".proto", ".in", ".1", ".yml", ".yaml")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof", "do", "else", "defined", "_Static_assert",
            "static_assert", "alignof", "_Alignof", "typeof", "__typeof__", "asm", "__asm__", "SEC"}


ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)")


def blank(text):
    """Spaces in place of everything but line breaks."""
    return re.sub(r"[^\n]", " ", text)


class File:
    def __init__(self, path):
        self.path = path
        with open(path, "rb") as f:
            data = f.read()
        self.text = None if b"\0" in data else data.decode("utf-8", "replace")
        self.lines = self.text.splitlines() if self.text is not None else []
        self._code = None

    def is_c(self):
        return self.path.endswith((".c", ".h"))

    def is_test(self):
        return self.path.startswith("tests/") or os.path.basename(self.path).startswith("test_")

    def is_product(self):
        """C that is compiled into what is installed."""
        return self.is_c() and not self.is_test() and self.path.startswith(
            ("core/", "bpf/", "plugins/", "include/"))

    def is_code(self):
        return self.path.endswith(CODE) or self.path == "Makefile" or self.text.startswith("#!")

    def includes(self):
        for number, line in enumerate(self.lines, 1):
            found = INCLUDE.match(line)
            if found:
                yield number, found.group(1) == '"', found.group(2)

    def code(self):
        """The text with comments, strings, directives and attributes blanked: offsets and lines stay."""
        if self._code is None:
            text = TOKEN.sub(lambda m: blank(m.group()), self.text)
            for pattern in (PREPROCESSOR, ATTRIBUTE):
                text = pattern.sub(lambda m: blank(m.group()), text)
            self._code = text
        return self._code

    def line_of(self, offset):
        return self.text.count("\n", 0, offset) + 1

    def functions(self):
        """(name, line of the opening brace, lines of the body) of each function."""
        start = 0
        for number, line in enumerate(self.lines, 1):
            if line == "{":
                start = number
            elif line == "}" and start:
                yield self.name_above(start), start, number - start - 1
                start = 0

    def name_above(self, brace):
        """The name of the function whose opening brace is on that line."""
        head = ""
        for line in reversed(self.code().split("\n")[max(0, brace - 8):brace - 1]):
            if re.search(r"[;}]\s*$", line):
                break
            head = line + " " + head
        names = [n for n in re.findall(r"(\w+)\s*\(", head) if n not in KEYWORDS]
        return names[0] if names else "?"

    def top_level(self):
        """(text before the brace or semicolon, its offset, body or None) of each declaration."""
        code, depth, begin, body = self.code(), 0, 0, 0
        for found in re.finditer(r"[{};]", code):
            c, at = found.group(), found.start()
            if c == "{":
                if not depth:
                    body = at
                depth += 1
            elif c == "}":
                depth = max(0, depth - 1)
                head = code[begin:body]
                if not depth and is_function(head):
                    yield head, begin, code[body:at]
                    begin = at + 1
            elif not depth:
                if body > begin:  # a struct, an enum or an initializer
                    yield code[begin:body], begin, code[body:at]
                else:
                    yield code[begin:at], begin, None
                begin = at + 1

    def definitions(self):
        """(name, line) of each function and type that is defined or declared here."""
        for head, at, _ in self.top_level():
            for found in re.finditer(r"(?:^|[^\w.>])(?:struct|union|enum)\s+(\w+)\s*$|(\w+)\s*\(", head):
                name = found.group(1) or found.group(2)
                if name not in KEYWORDS and (found.group(1) or "=" not in head[:found.start()]):
                    yield name, self.line_of(at + found.start(found.lastindex))

    def structs(self):
        """(name, line, number of fields) of each struct, with the fields of structs defined in it."""
        code = self.code()
        for found in re.finditer(r"\bstruct\s+(\w+)\s*\{", code):
            yield found.group(1), self.line_of(found.start()), fields(code, found.end())[0]


def is_function(head):
    return "=" not in head and head.rstrip().endswith(")") and not re.search(
        r"\b(struct|union|enum)\s+\w*\s*$", head)


def fields(code, at):
    """(number of fields of the struct whose body begins at, offset behind its brace)"""
    n, begin = 0, at
    while at < len(code):
        c = code[at]
        if c == "{":
            is_enum = re.search(r"\benum\b", code[begin:at])
            inner, at = fields(code, at + 1)
            end = code.index(";", at)
            n += declarators(code[at:end]) if is_enum else inner
            at = begin = end + 1
            continue
        if c == "}":
            return n, at + 1
        if c == ";":
            n += declarators(code[begin:at]) if code[begin:at].strip() else 0
            begin = at + 1
        at += 1
    return n, at


def declarators(text):
    """How many names `int a, *b` declares: commas outside of brackets."""
    while True:
        flat = re.sub(r"\([^()]*\)|\[[^\[\]]*\]", "", text)
        if flat == text:
            return text.count(",") + 1
        text = flat


def tracked():
    """Paths of the files of the tree: git's, or, without .git, all that are not built."""
    done = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-z", "-c", "-o",
                           "--exclude-standard"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if not done.returncode:
        paths = done.stdout.decode().split("\0")
    else:
        paths = [os.path.relpath(os.path.join(folder, name)) for folder, _, names in os.walk(".")
                 for name in names if not re.match(r"\./(build|\.git)|.*/__pycache__/", folder + "/")]
    return sorted(p for p in set(paths) if p and os.path.isfile(p))
