-- SPDX-License-Identifier: Apache-2.0
-- Containers only: a profile of each container, with its id and its runtime as labels.
sample.cpu { hz = 19 }
discover.cgroup {}
discover.process {}
unknown "drop"

sink.pprof {
  dir = os.getenv "FUSEE_DIR" or "/var/lib/fusee",
  every = "30s",
  per = "target",
  omit = { "pid", "tid" },
}

policy(function(t)
  if not t.labels.container_id then return false end
  return { labels = { container_short = t.labels.container_id:sub(1, 12) } }
end)
