-- SPDX-License-Identifier: Apache-2.0
setmetatable({}, { __gc = function() while true do end end })
