-- SPDX-License-Identifier: Apache-2.0
local f = io.open("/etc/passwd")
