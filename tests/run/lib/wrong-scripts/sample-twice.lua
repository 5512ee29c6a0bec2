-- SPDX-License-Identifier: Apache-2.0
sample.cpu { hz = 19 }
sample.cpu { hz = 29 }
sink.box { dir = "/x" }
