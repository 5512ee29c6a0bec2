-- SPDX-License-Identifier: Apache-2.0
local t
sink.box { dir = t.dir }
