-- SPDX-License-Identifier: Apache-2.0
dofile("x.lua")
