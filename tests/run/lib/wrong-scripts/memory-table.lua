-- SPDX-License-Identifier: Apache-2.0
local t = {}
for i = 1, 1e9 do t[i] = i end
