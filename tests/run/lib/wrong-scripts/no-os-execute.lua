-- SPDX-License-Identifier: Apache-2.0
os.execute("true")
