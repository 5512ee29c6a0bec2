# SPDX-License-Identifier: Apache-2.0
"""A package, so that tests can say `from lib.common import *`."""
