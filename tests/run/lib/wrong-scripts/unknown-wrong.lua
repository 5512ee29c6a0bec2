-- SPDX-License-Identifier: Apache-2.0
unknown "maybe"
sink.box { dir = "/x" }
