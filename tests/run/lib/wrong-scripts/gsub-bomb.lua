-- SPDX-License-Identifier: Apache-2.0
local t = ("a"):rep(3000)
print((t:gsub("a*a*b", "")))
