-- SPDX-License-Identifier: Apache-2.0
-- Labels as a team's Prometheus has them: rules of relabeling for all sinks, and for one.
discover.process {}
discover.cgroup {}

relabel {
  { action = "drop", source_labels = { "process" }, regex = "(sshd|systemd.*)" },
  { source_labels = { "process" }, target_label = "app" },
  { source_labels = { "service_name" }, regex = "(.+)", target_label = "app" },
  { action = "lowercase", source_labels = { "app" }, target_label = "app" },
}

sink.pprof { dir = "/var/lib/fusee", every = "60s", keep = "7d" }
sink.http {
  url = "http://127.0.0.1:4040/ingest",
  every = "15s",
  per = "target",
  relabel = { { action = "labelkeep", regex = "app|host|user" } }, -- what the server may index
}
