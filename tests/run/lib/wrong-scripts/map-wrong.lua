-- SPDX-License-Identifier: Apache-2.0
sink.box { dir = "/x", headers = "a" }
sink.box { dir = "/x", headers = { "a" } }
sink.box { dir = "/x", headers = { a = 1 } }
