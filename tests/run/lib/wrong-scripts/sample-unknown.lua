-- SPDX-License-Identifier: Apache-2.0
sample.gpu { hz = 19 }
sample.cpu { herz = 19, stak = "4KiB", kernel = 1 }
sink.box { dir = "/x" }
