# SPDX-License-Identifier: Apache-2.0
"""Rows of Parquet files by arrow-rs, a line of JSON each: parquet_arrow_rs.py FILE.. with an interpreter that has arro3 (arrow-rs
for Python). Integers are texts, times microseconds."""
import json
import sys

import arro3.core
import arro3.io


def values(column):
    if "Timestamp" in str(column.type):
        column = column.cast(arro3.core.DataType.int64())
    return [v.as_py() for v in column]


def plain(v):
    if isinstance(v, dict):
        return {k: plain(x) for k, x in v.items()}
    if isinstance(v, (list, tuple)):
        return [plain(x) for x in v]
    return str(v) if isinstance(v, int) else v


for path in sys.argv[1:]:
    table = arro3.io.read_parquet(path).read_all()
    for row in zip(*(values(table.column(name)) for name in table.column_names)):
        print(json.dumps(dict(zip(table.column_names, map(plain, row)))))
