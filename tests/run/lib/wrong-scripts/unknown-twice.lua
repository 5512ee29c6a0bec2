-- SPDX-License-Identifier: Apache-2.0
unknown "keep"
unknown "drop"
sink.box { dir = "/x" }
