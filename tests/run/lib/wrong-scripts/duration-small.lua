-- SPDX-License-Identifier: Apache-2.0
sink.box { dir = "/x", every = "10ms" }
