-- SPDX-License-Identifier: Apache-2.0
sample.cpu { hz = 19 }
