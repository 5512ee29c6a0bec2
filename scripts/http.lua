-- SPDX-License-Identifier: Apache-2.0
-- To a server that accepts pprof by POST, with a token from a file. While the server cannot be reached,
-- up to 128 MiB of profiles wait in a queue.
sample.cpu { hz = 19 }

sink.http {
  url = os.getenv "FUSEE_URL" or "http://127.0.0.1:4040/ingest",
  bearer_file = "/etc/fusee/token",
  headers = { ["X-Scope-OrgID"] = "ops" },
  every = "10s",
  per = "target",
  queue = "128MiB",
  omit = { "pid", "tid", "thread" }, -- labels that the server should not index
}
