-- SPDX-License-Identifier: Apache-2.0
sink.box { dir = "/x", queue = "much", size = "1" }
