-- SPDX-License-Identifier: Apache-2.0
-- To a server that takes pprof by POST, with a token from a file; what it cannot take just now waits in
-- a queue of 128 MiB.
sample.cpu { hz = 19 }

sink.http {
  url = os.getenv "FUSEE_URL" or "http://127.0.0.1:4040/ingest",
  bearer_file = "/etc/fusee/token",
  headers = { ["X-Scope-OrgID"] = "ops" },
  every = "10s",
  per = "target",
  queue = "128MiB",
  omit = { "pid", "tid", "thread" }, -- what a server should not index
}
