-- SPDX-License-Identifier: Apache-2.0
-- Warns when a function takes a larger share of a service's CPU time than it took in the version before.
--
-- A version is what a service has in its environment as APP_VERSION. A version is compared once it has
-- ENOUGH samples, with the version of the same service that was seen before it. A share that is found in n
-- samples is wrong by chance: a function is named only if its share grew by GROWTH and by SURE standard
-- deviations. The warning goes to the log and to fusee_script_events_total{event="regression"}.

local ENOUGH = 400  -- samples
local GROWTH = 0.05 -- of the CPU time
local SURE = 5      -- standard deviations: some hundred functions are compared, and often
local KEPT = 100    -- functions of a profile, the hottest
local SERVICES = 1000

sample.cpu { hz = tonumber(os.getenv "FUSEE_HZ") or 19 }
discover.process { env = { version = "APP_VERSION" } }
sink.pprof {
  dir = os.getenv "FUSEE_DIR" or "/var/lib/fusee",
  every = os.getenv "FUSEE_EVERY" or "60s",
  per = "target", -- a profile for each service and version
}

local services, n = {}, 0 -- by name: now, before; each has version, samples, self

local function add(version, p)
  version.samples = version.samples + p.samples
  for _, f in ipairs(p:top(KEPT)) do
    version.self[f.name] = (version.self[f.name] or 0) + f.self * p.samples
  end
end

local function compare(name, before, now)
  for f, samples in pairs(now.self) do
    local was, is = (before.self[f] or 0) / before.samples, samples / now.samples
    local noise = math.sqrt(was * (1 - was) / before.samples + is * (1 - is) / now.samples)

    if is - was > GROWTH and is - was > SURE * noise and not now.said[f] then
      now.said[f] = true
      warn(("%s: %s takes %.1f %% of version %s, %.1f %% of version %s"):format(
        name, f, is * 100, now.version, was * 100, before.version))
      count("regression", 1, { service = name, version = now.version })
    end
  end
end

on("profile", function(p)
  local name, version = p.labels.service_name or p.labels.process, p.labels.version

  if not name or not version or p.samples == 0 then return end
  local s = services[name]
  if not s then
    if n == SERVICES then return end
    s, n = {}, n + 1
    services[name] = s
  end
  if s.before and s.before.version == version then return end -- the last of its processes
  if not s.now or s.now.version ~= version then
    if s.now and s.now.samples >= ENOUGH then s.before = s.now end
    s.now = { version = version, samples = 0, self = {}, said = {} }
  end
  add(s.now, p)
  if s.before and s.now.samples >= ENOUGH then compare(name, s.before, s.now) end
end)
