-- SPDX-License-Identifier: Apache-2.0
local disk = sink.box { dir = "/x" }
print(disk.dir)
