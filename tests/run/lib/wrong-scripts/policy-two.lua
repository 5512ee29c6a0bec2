-- SPDX-License-Identifier: Apache-2.0
sink.box { dir = "/x" }
policy(function(t) end)
policy(function(t) end)
