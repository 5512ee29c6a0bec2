-- SPDX-License-Identifier: Apache-2.0
error({ "x" })
