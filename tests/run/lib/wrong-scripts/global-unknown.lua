-- SPDX-License-Identifier: Apache-2.0
snk.box { dir = "/x" }
