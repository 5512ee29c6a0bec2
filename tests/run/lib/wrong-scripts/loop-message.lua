-- SPDX-License-Identifier: Apache-2.0
error(setmetatable({}, { __tostring = function() while true do end end }))
