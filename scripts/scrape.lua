-- SPDX-License-Identifier: Apache-2.0
-- Profiles that a Go service makes of itself, beside fusee's own: work, memory in use, waits for locks. Each has
-- its own types and the labels job, instance and profile; sinks receive them as they come.
sample.cpu { hz = 19 }

discover.scrape {
  job = "shop",
  targets = { os.getenv "SHOP" or "127.0.0.1:6060" },
  paths = {
    "/debug/pprof/heap",
    "/debug/pprof/goroutine",
    "/debug/pprof/mutex?seconds=10", -- what happened in these 10 seconds; without it since the start
    "/debug/pprof/block?seconds=10",
  },
  interval = "60s",
  labels = { team = "shop" },
}

sink.pprof {
  dir = os.getenv "FUSEE_DIR" or "/var/lib/fusee",
  every = "60s",
}
