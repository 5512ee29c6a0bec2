-- SPDX-License-Identifier: Apache-2.0
sink.box { dir = "/x", level = 1.5 }
sink.box { dir = "/x", level = 10 }
sink.box { dir = "/x", level = "6" }
