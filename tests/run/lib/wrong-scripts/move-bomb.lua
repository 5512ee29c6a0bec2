-- SPDX-License-Identifier: Apache-2.0
table.move({}, 1, 1e15, 2)
