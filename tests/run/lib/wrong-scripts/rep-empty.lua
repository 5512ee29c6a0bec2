-- SPDX-License-Identifier: Apache-2.0
local t = (""):rep(1e15)
