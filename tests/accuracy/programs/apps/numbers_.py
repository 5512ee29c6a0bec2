# SPDX-License-Identifier: Apache-2.0
"""numpy: its C, Python that it calls, and C that this calls again. numbers_.py SECONDS"""
import sys
import time

import numpy as np


def smallest(row):
    return np.sort(row)[0]


def squared(x):
    return x * x + 1


def by_rows(a):
    return np.apply_along_axis(smallest, 1, a)


def by_elements(a):
    return np.frompyfunc(squared, 1, 1)(a)


def product(a):
    return np.linalg.norm(a @ a.T)


def main():
    end = time.process_time() + float(sys.argv[1])
    a = np.random.default_rng(1).random((300, 300))
    while time.process_time() < end:
        by_rows(a)
        by_elements(a[:100])
        product(a)


main()
