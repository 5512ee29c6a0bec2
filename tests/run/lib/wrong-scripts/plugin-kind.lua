-- SPDX-License-Identifier: Apache-2.0
sink.crowd {}
discover.box { dir = "/x" }
