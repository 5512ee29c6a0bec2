-- SPDX-License-Identifier: Apache-2.0
relabel {
  { action = "dorp", source_labels = { "user" }, regex = "root" },
  { source_labels = { "user" }, regex = "(a|b", target_label = "team" },
  { regexp = "a", target_label = 5 },
  { source_labels = { "a b" }, target_label = "team" },
  { action = "hashmod", target_label = "shard" },
  7,
}
sink.box {
  dir = "/tmp/x",
  relabel = { { replacement = "x" }, { action = "labeldrop", regex = "ü(?=a)" }, { action = "lowercase", target_label = "a", replacement = "b" } },
}
sink.box { dir = "/tmp/f", relabel = "drop" }
sink.box { dir = "/tmp/g", relabel = { action = "drop" } }
