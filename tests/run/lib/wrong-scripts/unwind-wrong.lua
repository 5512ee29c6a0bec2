-- SPDX-License-Identifier: Apache-2.0
unwind.stepper { enabled = "no", enable = 1 }
unwind.stepper {}
sink.box { dir = "/x" }
