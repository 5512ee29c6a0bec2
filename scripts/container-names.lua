-- SPDX-License-Identifier: Apache-2.0
-- Containers by name: a profile each minute in which each sample has its container, image and team; containers with the
-- label fusee=off are not profiled. Needs the package fusee-plugin-container, and a Docker, Podman, containerd or CRI-O.
sample.cpu { hz = 19 }
discover.cgroup {}
discover.container { labels = { "fusee", "team" } }
unknown "drop"

sink.pprof {
  dir = os.getenv "FUSEE_DIR" or "/var/lib/fusee",
  every = "60s",
  omit = { "fusee", "container_id", "cgroup", "pid", "tid" },
}

policy(function(t)
  if not t.labels.container or t.labels.fusee == "off" then return false end
  return { labels = { service_name = t.labels.container } }
end)
