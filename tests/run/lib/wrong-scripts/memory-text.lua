-- SPDX-License-Identifier: Apache-2.0
local t = "x"
while true do t = t .. t end
