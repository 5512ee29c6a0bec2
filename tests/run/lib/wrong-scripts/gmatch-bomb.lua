-- SPDX-License-Identifier: Apache-2.0
for w in ("a"):rep(3000):gmatch("a*a*b") do print(w) end
