-- SPDX-License-Identifier: Apache-2.0
control {}
metrics { listen = 9190 }
sink.box { dir = "/x" }
