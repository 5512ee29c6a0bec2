-- SPDX-License-Identifier: Apache-2.0
-- Different rates and sinks for different targets. The policy is called once for each label set.
local dir = os.getenv "FUSEE_DIR" or "/var/lib/fusee"

sample.cpu { hz = 19 }
discover.process {}
discover.cgroup {}
unknown "drop" -- processes that no discovery knows are not profiled

local all = sink.pprof { dir = dir .. "/all", every = "60s" }
local db = sink.pprof { dir = dir .. "/db", every = "10s", per = "target", keep = "30d" }

local quiet = { ["cron.service"] = true, ["apt-daily.service"] = true, ["man-db.service"] = true }

policy(function(t)
  -- "/system.slice/postgresql.service": the service's name
  local unit = (t.labels.cgroup or ""):match "([^/]+%.service)"

  if quiet[unit] then return false end
  if t.labels.process == "postgres" then
    return { hz = 97, labels = { team = "db" }, to = { db } }
  end
  if unit then
    return { labels = { unit = unit }, to = { all } }
  end
  return { to = { all } }
end)
