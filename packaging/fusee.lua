-- SPDX-License-Identifier: Apache-2.0
-- What fusee.service does. After a change:
--     fusee check /etc/fusee/fusee.lua && systemctl reload fusee
-- Everything that can be said here: `fusee plugins NAME`, and lua.md in /usr/share/doc/fusee.

-- 19 samples a second of CPU time, of every process.
sample.cpu { hz = 19 }

-- A profile a minute in /var/lib/fusee. `fusee report FILE` shows one.
sink.pprof { dir = "/var/lib/fusee", every = "60s", keep = "7d", max_size = "2GiB" }

-- The same to a server that takes pprof (package fusee-plugin-http):
-- sink.http { url = "http://127.0.0.1:4040/ingest", every = "10s", omit = { "pid", "tid" } }

-- The agent's own numbers for Prometheus:
-- metrics { listen = "127.0.0.1:9190" }

-- What is profiled, how often and with which labels; asked once for each set of labels:
-- policy(function(t)
--   if t.labels.process == "sshd" then return false end
--   if t.labels.process == "postgres" then
--     return { hz = 97, labels = { team = "db" } }
--   end
-- end)
