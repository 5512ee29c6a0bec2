-- SPDX-License-Identifier: Apache-2.0
require "nothing_of_this_name"
