# SPDX-License-Identifier: Apache-2.0
"""docs/internals/checks.md: the last complete result of each tier, and what each test took."""
import os
import re
import time

PAGE = "docs/internals/checks.md"
LAST = "| tier | commit | date | minutes | CPU minutes | tests | passed | failed | skipped | flaky |"
EACH = "| test | tier | seconds | CPU |"
ROW = re.compile(r"^\| (\S+) \| ([a-z ]+) \| +([\d.]+) \| +([\d.]+) \|$", re.M)
NEGLIGIBLE = 0.5  # seconds; shorter tests have no row


def seconds():
    """{name: seconds of the last recorded run}"""
    try:
        with open(PAGE) as f:
            return {name: float(took) for name, _, took, _ in ROW.findall(f.read())}
    except OSError:
        return {}


def rows(text, head):
    """The table's rows behind the line `head`, and the text before and behind them."""
    begin = text.index(head)
    begin = text.index("\n", text.index("\n", begin) + 1) + 1
    end = begin
    while text.startswith("|", end):
        end = text.index("\n", end) + 1
    return text[:begin], text[begin:end].splitlines(), text[end:]


def put(text, head, new, key):
    """Replaces the rows of the same key, the first `key` columns."""
    def name(row):
        return row.split(" | ")[:key]
    before, old, behind = rows(text, head)
    fresh = {tuple(name(r)) for r in new}
    all_rows = [r for r in old if tuple(name(r)) not in fresh] + new
    return before + "".join(r + "\n" for r in sorted(all_rows)) + behind


def write(tier, commit, took, results):
    """took: seconds."""
    cpu = sum(r.cpu for r in results)
    flaky = ", ".join(r.name for r in results if r.flaky) or "none"
    last = "| %s | %s | %s | %.1f | %.1f | %d | %d | %d | %d | %s |" % (
        tier, commit, time.strftime("%Y-%m-%d"), took / 60, cpu / 60, len(results), sum(r.passed for r in results),
        sum(len(r.failed) for r in results), sum(len(r.skipped) for r in results), flaky)
    each = ["| %s | %s | %.1f | %.1f |" % (r.name, "long" if tier == "long" else r.test.tiers[0], r.seconds, r.cpu)
            for r in results if r.seconds >= NEGLIGIBLE]
    with open(PAGE) as f:
        text = f.read()
    text = put(put(text, LAST, [last], 1), EACH, each, 2)
    with open(PAGE + ".new", "w") as f:
        f.write(text)
    os.rename(PAGE + ".new", PAGE)
