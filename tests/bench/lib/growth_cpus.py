# SPDX-License-Identifier: Apache-2.0
"""What an agent takes in a virtual machine with so many CPUs. They are emulated, so its memory and what it loses say
something, its CPU time does not."""

import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "run", "lib"))
import kernels  # noqa: E402
import meter  # noqa: E402

KERNEL = "6.12"
LIMIT = 900  # seconds; the CPUs of the machine share those that are here
MEMORY = 2048  # MiB
FIELDS = ("map_type", "value_size", "max_entries", "memlock")
PER_CPU = {5, 6, 10}  # types of maps: hash, array and LRU hash with values for each CPU

JOB = r"""
part() {
	name=$1
	shift
	echo "=== $name"
	"$@" 2>&1
	echo "=== exit $?"
}
status() {
	/fusee/fusee ctl --json --socket /tmp/control status
}
/opt/growing processes 5 >/dev/null &
/opt/growing processes 5 >/dev/null &
cat >/tmp/fusee.lua <<'END'
SCRIPT
END
HOME=/tmp /fusee/fusee run -c /tmp/fusee.lua 2>/tmp/log &
agent=$!
until status >/tmp/status 2>&1 && grep -Eq '"samples": *[1-9][0-9]' /tmp/status; do
	kill -0 $agent || break
	sleep 0.5 # between two looks
done
part cpus cat /sys/devices/system/cpu/online
part status status
part smaps cat /proc/$agent/smaps
part fdinfo sh -c "for fd in /proc/$agent/fdinfo/*; do echo fd; cat \$fd; done"
part log cat /tmp/log
killall -9 growing fusee
"""


def maps_of(text):
    """-> [{field: number}], each map once"""
    found = {}
    for fd in text.split("fd\n"):
        info = dict(line.split(":", 1) for line in fd.splitlines() if ":" in line)
        if "map_id" in info:
            found[info["map_id"]] = {k: int(info[k]) for k in FIELDS}
    return list(found.values())


def measure(build, program, script, cpus):
    """-> {"rss", "rings", "maps", "by_cpu": bytes, "samples", "lost": their number}"""
    kernels.need_tools()
    with tempfile.TemporaryDirectory(prefix="fusee-growth-") as work:
        image = kernels.Image(work)
        image.add_build(build)
        image.add(program, "/opt/growing")
        got = kernels.boot(kernels.fetch(KERNEL), image, JOB.replace("SCRIPT", script), LIMIT, cpus, MEMORY)
    said = kernels.parts(got.output)
    if got.code is None or said.get("cpus", ("", 1))[0].strip() != ("0-%d" % (cpus - 1)):
        raise RuntimeError("%d CPUs: %s\n%s" % (cpus, got.output[-2000:], got.console[-1000:]))
    memory, maps = meter.memory_of(said["smaps"][0].splitlines()), maps_of(said["fdinfo"][0])
    status = json.loads(said["status"][0])
    return dict(
        rss=memory["rss"],
        rings=memory["rings"],
        maps=sum(m["memlock"] for m in maps),
        by_cpu=sum(m["memlock"] for m in maps if m["map_type"] in PER_CPU),
        samples=status["samples"],
        lost=status["lost"],
    )
