#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""growth_plot.py GROWTH.json OUT.svg: the figures of tests/bench/store --growth as lines, each panel from 0."""
import json
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


def main(source, to):
    with open(source) as f:
        data = json.load(f)
    queries = ["fusee: one hour of a service", "fusee: services over time", "fusee: a service, all days", "DuckDB: sums of services"]
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">' % (WIDTH, HEIGHT + 40, WIDTH, HEIGHT + 40),
           '<rect width="100%" height="100%" fill="#ffffff"/>']
    out += panel(LEFT, "a query, by days kept", "CPU seconds", data["days"], queries)
    out += panel(LEFT + 250, "writing a window, by services", "CPU seconds", data["services"], ["a window"])
    out += panel(LEFT + 500, "and by new stacks in 10,000", "CPU seconds", data["fresh"], ["a window"])
    with open(to, "w") as f:
        f.write("\n".join(["<!-- SPDX-License-Identifier: Apache-2.0 -->", *out, "</svg>"]) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
