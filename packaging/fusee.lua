-- SPDX-License-Identifier: Apache-2.0
-- The script of fusee.service. After a change:
--     fusee check /etc/fusee/fusee.lua && systemctl reload fusee
-- Reference: `fusee plugins NAME`, and lua.md in /usr/share/doc/fusee.

-- 19 samples for each second of CPU time of each process.
sample.cpu { hz = 19 }

-- One profile for each minute, in /var/lib/fusee. `fusee report FILE` shows it.
sink.pprof { dir = "/var/lib/fusee", every = "60s", keep = "7d", max_size = "2GiB" }

-- The same to a server that accepts pprof (package fusee-plugin-http):
-- sink.http { url = "http://127.0.0.1:4040/ingest", every = "10s", omit = { "pid", "tid" } }

-- Metrics of the agent for Prometheus:
-- metrics { listen = "127.0.0.1:9190" }

-- Which processes are profiled, at which rate and with which labels; called once for each label set:
-- policy(function(t)
--   if t.labels.process == "sshd" then return false end
--   if t.labels.process == "postgres" then
--     return { hz = 97, labels = { team = "db" } }
--   end
-- end)
