-- SPDX-License-Identifier: Apache-2.0
local t = ("a"):rep(2000)
print(t:match(".-.-.-.-b"))
