-- SPDX-License-Identifier: Apache-2.0
sink.box {
  dirr = "/x",
  dir = "/y",
  nonsense = 1,
}
