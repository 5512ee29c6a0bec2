-- SPDX-License-Identifier: Apache-2.0
sink.box { dir = "/x", share = "200%" }
sink.box { dir = "/x", share = "half" }
sink.box { dir = "/x", share = 5 }
