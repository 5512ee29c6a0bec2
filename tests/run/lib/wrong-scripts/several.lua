-- SPDX-License-Identifier: Apache-2.0
sink.box { dirr = "/x" }
sink.bxo {}
discover.crowd { nod = "a" }
sample.cpu { hz = "a" }
x = 1
