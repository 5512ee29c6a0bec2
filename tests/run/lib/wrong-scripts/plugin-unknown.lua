-- SPDX-License-Identifier: Apache-2.0
sink.bxo { dir = "/x" }
discover.crwd {}
unwind.steper {}
sink.nothinglike {}
