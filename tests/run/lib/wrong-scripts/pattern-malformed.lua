-- SPDX-License-Identifier: Apache-2.0
local at = ("x"):find("[")
