-- SPDX-License-Identifier: Apache-2.0
sink.box { dir = "/x" }
local n = 0
while true do n = n + 1 end
