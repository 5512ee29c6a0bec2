#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""growth_plot.py GROWTH.json OUT.svg: the figures of tests/bench/store --growth as lines, each panel from 0.

The figures of tests/bench/growth --json, which have tens of a thing to thousands, are drawn by logarithms: a line that is no
steeper than the dashed one, which is linear, does not bend.
"""
import json
import math
import sys

WIDTH, HEIGHT, LEFT, TOP, PLOT_W, PLOT_H = 760, 250, 56, 40, 170, 150
COLOURS = ["#1f6fb2", "#c4541c", "#3f8f3f", "#777777"]


def text(x, y, words, anchor="start", colour="#222222"):
    return '<text x="%.1f" y="%.1f" font-size="11" font-family="sans-serif" fill="%s" text-anchor="%s">%s</text>' % (x, y, colour, anchor, words)


def panel(left, title, unit, rows, names):
    """rows: [x, value of each name ..]; places of x are evenly apart."""
    top = max(max(row[1:1 + len(names)]) for row in rows) * 1.1
    out = [text(left, TOP - 18, title), text(left, TOP - 5, unit, colour="#777777")]
    places = [left + PLOT_W * i / (len(rows) - 1) for i in range(len(rows))]
    for i in range(3):
        y = TOP + PLOT_H * i / 2
        out.append('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#dddddd"/>' % (left, y, left + PLOT_W, y))
        out.append(text(left - 4, y + 4, "%.3g" % (top * (2 - i) / 2), "end", "#777777"))
    out += [text(x, TOP + PLOT_H + 14, "%g" % row[0], "middle", "#777777") for x, row in zip(places, rows)]
    for k, name in enumerate(names):
        points = [(x, TOP + PLOT_H * (1 - row[1 + k] / top)) for x, row in zip(places, rows)]
        out.append('<polyline fill="none" stroke="%s" stroke-width="1.5" points="%s"/>' % (COLOURS[k], " ".join("%.1f,%.1f" % p for p in points)))
        out += ['<circle cx="%.1f" cy="%.1f" r="2.5" fill="%s"/>' % (*p, COLOURS[k]) for p in points]
        out.append(text(left, TOP + PLOT_H + 30 + 13 * k, name, colour=COLOURS[k]))
    return out


def log_panel(left, top, title, rows, names):
    """rows: [x, value of each name ..], by logarithms on both axes; the dashed line grows as x does."""
    values = [v for row in rows for v in row[1:] if v > 0]
    lo, hi = math.floor(math.log10(min(values))), max(math.ceil(math.log10(max(values))), math.floor(math.log10(min(values))) + 1)
    x0, x1 = math.log10(rows[0][0]), math.log10(rows[-1][0])

    def place(x, y):
        return left + PLOT_W * (math.log10(x) - x0) / (x1 - x0), top + PLOT_H * (hi - math.log10(y)) / (hi - lo)

    out = [text(left, top - 8, title)]
    for i in range(lo, hi + 1):
        y = place(rows[0][0], 10 ** i)[1]
        out.append('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#dddddd"/>' % (left, y, left + PLOT_W, y))
        out.append(text(left - 4, y + 4, "%g" % 10 ** i, "end", "#777777"))
    last = -PLOT_W
    for row in rows:
        x = place(row[0], 10 ** lo)[0]
        if x - last > 30:  # else the one would lie over the other
            out.append(text(x, top + PLOT_H + 14, "%d" % row[0], "middle", "#777777"))
            last = x
    decades = min(x1 - x0, hi - lo)
    ends = (rows[-1][0] / 10 ** decades, 10 ** (hi - decades)), (rows[-1][0], 10 ** hi)
    out.append('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#aaaaaa" stroke-dasharray="3 3"/>' % (*place(*ends[0]), *place(*ends[1])))
    for k, name in enumerate(names):
        points = [place(row[0], row[1 + k]) for row in rows if row[1 + k] > 0]
        out.append('<polyline fill="none" stroke="%s" stroke-width="1.5" points="%s"/>' % (COLOURS[k], " ".join("%.1f,%.1f" % p for p in points)))
        out += ['<circle cx="%.1f" cy="%.1f" r="2.5" fill="%s"/>' % (*p, COLOURS[k]) for p in points]
    return out


AGENT = {"processes": "sleeping processes", "files": "mapped files", "text": "MB of mapped code", "stacks": "different stacks of a program",
         "cpus": "virtual CPUs"}


def agent(data):
    """One panel for each thing that there is more and more of."""
    out, names = [], {"rss": "RSS, MiB", "maps": "BPF maps, MiB", "start": "CPU s until settled", "rings": "rings, MiB"}
    kinds = [kind for kind in AGENT if data.get(kind)]
    for i, kind in enumerate(kinds):
        keys = ["rss", "maps", *{"cpus": ["rings"], "stacks": []}.get(kind, ["start"])]
        rows = [[row["n"], *(row[k] for k in keys)] for row in data[kind]]
        out += log_panel(LEFT + 250 * (i % 3), TOP + (PLOT_H + 50) * (i // 3), AGENT[kind], rows, [names[k] for k in keys])
    below = TOP + (PLOT_H + 50) * ((len(kinds) + 2) // 3) - 12
    for k, name in enumerate(["RSS, MiB", "BPF maps, MiB", "CPU s until settled, workers included; of CPUs: rings, MiB"]):
        out.append(text(LEFT + 150 * k, below, name, colour=COLOURS[k]))
    return below + 12, out


def main(source, to):
    with open(source) as f:
        data = json.load(f)
    height, out = agent(data) if "days" not in data else (HEIGHT + 40, store(data))
    frame = '<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">' % (WIDTH, height, WIDTH, height)
    with open(to, "w") as f:
        f.write("\n".join(["<!-- SPDX-License-Identifier: Apache-2.0 -->", frame, '<rect width="100%" height="100%" fill="#ffffff"/>', *out,
                           "</svg>"]) + "\n")


def store(data):
    queries = ["fusee: one hour of a service", "fusee: services over time", "fusee: a service, all days", "DuckDB: sums of services"]
    return (panel(LEFT, "a query, by days kept", "CPU seconds", data["days"], queries) +
            panel(LEFT + 250, "writing a window, by services", "CPU seconds", data["services"], ["a window"]) +
            panel(LEFT + 500, "and by new stacks in 10,000", "CPU seconds", data["fresh"], ["a window"]))


if __name__ == "__main__":
    main(*sys.argv[1:])
