-- SPDX-License-Identifier: Apache-2.0
for i = 1, 64 do
	sink.box { dir = "/x" .. i }
end
sample.inuse {}
