-- SPDX-License-Identifier: Apache-2.0
xpcall(function() error("x") end, function() while true do end end)
