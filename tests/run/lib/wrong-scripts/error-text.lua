-- SPDX-License-Identifier: Apache-2.0
if not os.getenv "FUSEE_NO_SUCH_NODE" then
  error("FUSEE_NO_SUCH_NODE is not set")
end
