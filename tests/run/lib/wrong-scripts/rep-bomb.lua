-- SPDX-License-Identifier: Apache-2.0
local t = ("x"):rep(1e9)
