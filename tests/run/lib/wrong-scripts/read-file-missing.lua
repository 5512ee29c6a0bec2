-- SPDX-License-Identifier: Apache-2.0
sink.box { dir = "/x", token = read_file "nothing/of/this/name" }
