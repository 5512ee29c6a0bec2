-- SPDX-License-Identifier: Apache-2.0
local t = ("a"):rep(30)
print(t:find(("a?"):rep(30) .. t))
