# SPDX-License-Identifier: Apache-2.0
"""A running fusee ui, and its numbers beside those of fusee report and go tool pprof."""
import urllib.error
import urllib.parse
from lib.common import *  # noqa: F403

GO = shutil.which("go") or "/usr/local/go/bin/go"
PAGE = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Ui:
    """A running fusee ui, and its answers."""

    def __init__(self, *args):
        self.process = subprocess.Popen([FUSEE, "ui", "--no-browser", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        self.files = {f["name"]: f["file"] for f in self.get("profiles.json")["files"]}

    def get(self, name, **query):
        text = urllib.parse.urlencode(query, doseq=True)
        try:
            with PAGE.open("%s%s?%s" % (self.address, name, text), timeout=within(60)) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as e:
            return json.load(e)

    def end(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(within(20))


def report(*args):
    r = subprocess.run([FUSEE, "report", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=within(60), check=False)
    return r.stdout


def number(text):
    return int(float(text))


def rows_of_top(text):
    """{name: (flat, cum)} of --top of a value type whose unit is count."""
    rows = {}
    for line in text.splitlines():
        m = re.match(r" *(-?\d+) +-?[\d.]+% +-?[\d.]+% +(-?\d+) +-?[\d.]+%  (.*?)( \((partial-)?inline\))?$", line)
        if m:
            rows[m[3]] = (number(m[1]), number(m[2]))
    return rows


def calls_of_peek(text):
    """[callers, callees] of the only function of --peek, each {name: value}."""
    calls, at = [{}, {}], 0
    for line in text.splitlines():
        m = re.match(r" +(-?\d+) +-?[\d.]+% \|   (.*?)( \(inline\))?$", line)
        if m:
            calls[at][m[2]] = number(m[1])
        elif re.match(r" *-?\d+ .*\| ", line):
            at = 1
    return calls


def table(ui, **query):
    return {f[0]: tuple(f[5:7]) for f in ui.get("table.json", **query)["functions"]}


def exact(ui, name, what, args, **query):
    """Every function's self and total, exactly: against --json."""
    functions = json.loads(report("--json", *args, name)).get("functions", [])
    sums = sorted((f["self"], f["total"]) for f in functions if f["self"] or f["total"])
    ours = sorted(f[5:7] for f in ui.get("table.json", file=ui.files[name], **query)["functions"])
    tap.check("%s: %s: self and total of %d functions" % (name, what, len(sums)), [list(s) for s in sums] == ours, (sums[:9], ours[:9]))


def tops(ui, name, ours, what, **query):
    """The rows of a top are in the table with the same values: rows that it trims are only there."""
    rows, functions = rows_of_top(ours), table(ui, file=ui.files[name], type="samples", **query)
    wrong = {n: (v, functions.get(n)) for n, v in rows.items() if functions.get(n) != v}
    tap.check("%s: %s: %d rows" % (name, what, len(rows)), rows and not wrong, wrong or ours)


def peeks(ui, name, kind="samples", some=12):
    for function, (self, total) in sorted(table(ui, file=ui.files[name], type=kind).items())[:some]:
        d = ui.get("callers.json", file=ui.files[name], type=kind, function=function)
        ours = [{n: v for n, _, v in d["callers"]}, {n: v for n, _, v in d["callees"]}]
        text = report("--peek", "^" + re.escape(function) + "$", "--sample-type", kind, name)
        own = d["function"][5:7] == [self, total]
        tap.check("%s: callers and callees of %.40s" % (name, function), own and ours == calls_of_peek(text), (ours, text))


def graph(ui, name, kind="samples"):
    """The graph has the functions of the table, and the calls of each function."""
    d = ui.get("calls.json", file=ui.files[name], type=kind)
    functions, names = table(ui, file=ui.files[name], type=kind), [n[0] for n in d["nodes"]]
    wrong = {n[0]: n for n in d["nodes"] if functions[n[0]] != tuple(n[3:5])}
    tap.check("%s: %d functions of the graph" % (name, len(names)), names and not wrong, wrong)
    if len(names) < len(functions):
        totals = sorted((abs(total) for _, total in functions.values()), reverse=True)
        # none may be heavier than half of them: all in one chain
        heaviest = {f for f, (_, total) in functions.items() if abs(total) > totals[len(names) // 2]}
        tap.check("%s: its heaviest functions are there" % name, heaviest <= set(names), (heaviest, names))
        return
    calls = {}
    for function in names:
        for callee, _, value in ui.get("callers.json", file=ui.files[name], type=kind, function=function)["callees"]:
            calls[(function, callee)] = value
    tap.check("%s: its %d calls" % (name, len(calls)), calls == {(names[a], names[b]): v for a, b, v, _ in d["edges"]}, (calls, d["edges"]))


def calls_of_stacks(text, function):
    """[callers, callees] of a function of --json, each a list of [value, base]."""
    d, sums = json.loads(text), [{}, {}]
    for s in d["stacks"]:
        seen, frames = set(), s["frames"][::-1]
        for caller, callee in zip(frames, frames[1:]):
            for side, own, other in ((0, callee, caller), (1, caller, callee)):
                if own == function and own != other and (side, other) not in seen:
                    seen.add((side, other))
                    v = sums[side].setdefault(other, [0, 0])
                    v[0] += s["value"]
                    v[1] += s.get("base", 0)
    return [sorted(v for v in side.values() if v != [0, 0]) for side in sums]
