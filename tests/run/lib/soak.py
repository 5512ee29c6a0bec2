# SPDX-License-Identifier: Apache-2.0
"""Is a series of measurements flat? And its picture."""
import random

WARM = 0.2  # of the time: caches fill


def slope(points):
    """Of the line through them, by the median of all pairs' slopes: peaks do not turn it."""
    step = max(1, len(points) // 150)
    p = points[::step]
    all_of_them = sorted((b[1] - a[1]) / (b[0] - a[0]) for i, a in enumerate(p) for b in p[i + 1:] if b[0] > a[0])
    return all_of_them[len(all_of_them) // 2]


def flat(points, spare):
    """What grows in [(time, value)] by more than a fiftieth and the spare; "": nothing does. By the slope of all, and
    by the peaks of the first and the last third, so that neither a slow leak nor a late step is missed."""
    last = points[-1][0]
    points = [p for p in points if p[0] >= WARM * last]
    if len(points) < 30:
        return "only %d measurements" % len(points)
    values = sorted(v for _, v in points)
    allowed = values[len(values) // 2] / 50 + spare
    grown = slope(points) * (last - points[0][0])
    third = len(points) // 3
    peak = max(v for _, v in points[-third:]) - max(v for _, v in points[:third])
    if grown <= allowed and peak <= 3 * allowed:
        return ""
    return "grows by %.0f over the time, its peaks by %.0f; %.0f are allowed" % (grown, peak, allowed)


def sane():
    """Judges what is known. -> texts of wrong judgements."""
    dice, wrong = random.Random(1), []
    mib = 1 << 20

    def series(f):
        return [(t, 20 * mib + f(t) + dice.uniform(-mib, mib)) for t in range(0, 1800, 5)]
    for what, leaks, f in (
            ("noise", False, lambda t: 0),
            ("a saw of 10 s and 4 MiB", False, lambda t: (t % 10) * 0.4 * mib),
            ("a saw of 5 minutes and 4 MiB", False, lambda t: (t % 300) / 300 * 4 * mib),
            ("what fills in the first minutes", False, lambda t: min(t, 300) / 300 * 8 * mib),
            ("a leak of 1 KiB a second", True, lambda t: t * 1024),
            ("a leak beneath a saw", True, lambda t: t * 2048 + (t % 60) / 60 * 2 * mib),
            ("a step of 6 MiB near the end", True, lambda t: 6 * mib if t > 1500 else 0)):
        said = flat(series(f), mib / 2)
        if bool(said) != leaks:
            wrong.append("%s: %s" % (what, said or "taken for flat"))
    return wrong


# ---- the picture ----

COLOURS = ("#1f6fb4", "#6baed6", "#d95f0e", "#2a8f4f", "#7a4fa3")
LEFT, TOP, WIDTH, HEIGHT = 60, 34, 640, 300


def nice(most):
    """A round distance of lines on an axis of that length."""
    for step in (1, 2, 4, 8, 10, 16, 32, 64, 128, 256, 512):
        if most / step <= 8:
            return step
    return most


def text(x, y, what, more=""):
    return '<text x="%g" y="%g"%s>%s</text>' % (x, y, more, what)


def draw(series, kinds):
    """An SVG of {"t": seconds, kind: bytes} over minutes, kinds: (key, words, cap)."""
    mib = 1 << 20
    last = series[-1]["t"]
    top = max(s[k] for s in series for k, _, _ in kinds) / mib * 1.1

    def at(t, bytes_):
        return LEFT + t / last * WIDTH, TOP + HEIGHT - bytes_ / mib / top * HEIGHT
    out = ['<!-- SPDX-License-Identifier: Apache-2.0 -->',
           '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">' %
           (LEFT + WIDTH + 30, TOP + HEIGHT + 44 + 18 * len(kinds)),
           '<rect width="100%" height="100%" fill="#fff"/>', text(LEFT, 20, "memory of the agent over time, MiB")]
    for i in range(int(top / nice(top)) + 1):
        y = at(0, i * nice(top) * mib)[1]
        out += ['<path d="M%d %.1fH%d" stroke="#ddd"/>' % (LEFT, y, LEFT + WIDTH),
                text(LEFT - 8, y + 4, "%d" % (i * nice(top)), ' text-anchor="end"')]
    for i in range(int(last / 60 / nice(last / 60)) + 1):
        minute = i * nice(last / 60)
        out.append(text(at(minute * 60, 0)[0], TOP + HEIGHT + 18, "%d min" % minute, ' text-anchor="middle"'))
    for n, (key, words, cap) in enumerate(kinds):
        most = max(1, len(series) // 320)  # peaks stay
        points = [max(series[i:i + most], key=lambda s: s[key]) for i in range(0, len(series), most)]
        line = "L".join("%.1f %.1f" % at(s["t"], s[key]) for s in points)
        y = TOP + HEIGHT + 40 + 18 * n
        out += ['<path d="M%s" fill="none" stroke="%s" stroke-width="1.5"/>' % (line, COLOURS[n]),
                '<path d="M%d %dh20" stroke="%s" stroke-width="3"/>' % (LEFT, y - 4, COLOURS[n]),
                text(LEFT + 28, y, "%s (at most %.1f of %d)" % (
                    words, max(s[key] for s in series) / mib, cap // mib))]
    return "\n".join(out) + "\n</svg>\n"
