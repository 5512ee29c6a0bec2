-- SPDX-License-Identifier: Apache-2.0
-- For one machine: a profile of each target every five minutes, kept for two weeks, and the stacks as
-- text beside them, for grep and flame graph tools.
local dir = os.getenv "FUSEE_DIR" or "/var/lib/fusee"

sample.cpu { hz = 49, threads = true }

sink.pprof {
  dir = dir,
  every = "5m",
  per = "target",
  keep = "14d",
  max_size = "4GiB",
}
sink.folded { path = dir .. "/stacks.folded", every = "5m", omit = { "pid" } }

metrics { listen = "127.0.0.1:9190" }
