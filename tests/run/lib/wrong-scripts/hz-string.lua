-- SPDX-License-Identifier: Apache-2.0
sample.cpu { hz = "fast" }
sink.box { dir = "/x" }
