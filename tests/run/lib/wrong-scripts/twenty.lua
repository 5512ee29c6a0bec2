-- SPDX-License-Identifier: Apache-2.0
for i = 1, 30 do
  sink.box { dir = i }
end
