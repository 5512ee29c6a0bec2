-- SPDX-License-Identifier: Apache-2.0
while true do
  pcall(function() while true do end end)
end
