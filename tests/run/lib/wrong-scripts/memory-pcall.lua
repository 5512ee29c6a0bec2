-- SPDX-License-Identifier: Apache-2.0
local t = {}
while true do
  pcall(function() for i = #t, 1e9 do t[i + 1] = i end end)
end
