-- SPDX-License-Identifier: Apache-2.0
local function f(n) return 1 + f(n) end
f(1)
