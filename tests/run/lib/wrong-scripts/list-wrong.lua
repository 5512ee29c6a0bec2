-- SPDX-License-Identifier: Apache-2.0
sink.box { dir = "/x", omit = "pid" }
sink.box { dir = "/x", omit = { pid = true } }
sink.box { dir = "/x", omit = { "pid", 5 } }
