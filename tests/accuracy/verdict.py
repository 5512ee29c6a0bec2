# SPDX-License-Identifier: Apache-2.0
"""Does one run's count of stacks hold? Numbers only: tests/run/accuracy-verdict tries them.

The samples due are those of a twin event. A timer that comes late leaves ticks out, and the twin's
timer and the profiler's own come late independently of each other: where the machine is busy, the
profiler may well have skipped some more than the twin did. Those are no fault of its stacks, so
what it counted as `timer skipped` beyond the twin's skips is excused, but only as far as chance
goes: the difference of two independent counts a and b has a standard deviation of sqrt(a + b), and
CAP of those is all. A profiler that calls its losses `timer skipped` gains no more than that in one
run, and over all runs of a table together, where chance evens out, even less.
"""

import math

BAR = 0.999
CAP = 3
CAP_OF_ALL = 4  # one look at all runs, which is not repeated
EXCUSED = 0.02  # of the ticks: moments that the grammar knows no stack can tell the truth in


def late(twin, own):
    """Ticks excused to a profiler that skipped `own` where the twin skipped `twin`."""
    return min(max(0, own - twin), CAP * math.sqrt(max(0, twin) + max(0, own)))


def enough(ticks, skipped, true, excused, own):
    """None, or why too few of the samples due became complete and true stacks. skipped: the twin's,
    own: what the profiler itself counted as skipped by its timer."""
    if not ticks:
        return "the twin saw no tick"
    if excused > EXCUSED * ticks:
        return "%d of %d samples due are excused: too many" % (excused, ticks)
    spare = late(skipped, own)
    if true + spare < BAR * (ticks - excused):
        return (
            "%d of %d samples due are complete and true, %d more were skipped by its timer beyond the "
            "twin's and may be: less than 99.9 %%" % (true, ticks - excused, spare)
        )
    return None


def hidden(runs):
    """None, or that the profiler skipped more than its twins. runs: (the twin's, its own) skips."""
    twin, own = sum(t for t, _ in runs), sum(o for _, o in runs)
    if own - twin <= CAP_OF_ALL * math.sqrt(max(0, twin) + max(0, own)):
        return None
    return "its timer skipped %d ticks in all, the twins' %d: more than by chance" % (own, twin)
