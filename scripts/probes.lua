-- SPDX-License-Identifier: Apache-2.0
-- Beside CPU time: how long services of systemd wait for their files to be on disk, where programs
-- begin others, and each collection of garbage by Python.
sample.cpu { hz = 19 }

sample.probe { "uretprobe:/usr/lib/x86_64-linux-gnu/libc.so.6:fsync", name = "fsync", time = "1ms" }
sample.probe { "rawtp:sched_process_exec", name = "exec" }
sample.probe { "usdt:/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0:python:gc__start", name = "gc", count = 10 }

policy(function(t)
  if not t.labels.unit then return false end      -- a process that is not selected has no probes
end)

sink.pprof { dir = "/var/lib/fusee/profiles", every = "60s", keep = "7d" }
