-- SPDX-License-Identifier: Apache-2.0
local go = coroutine.wrap(function()
  while true do end
end)
go()
