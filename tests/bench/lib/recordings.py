# SPDX-License-Identifier: Apache-2.0
"""Profiles of programs on this machine, by `fusee record`, that tests/bench/store makes days of."""
import os
import shutil
import subprocess
import sys

import programs

PYTHON = r"""
import csv, io, json, re, sqlite3, time, random, xml.etree.ElementTree as tree
end, r = time.process_time() + SECONDS, random.Random(1)
rows = [{"id": i, "name": "n%d" % (i * 7919 % 997), "tags": ["a", "b", str(i)], "value": r.random()} for i in range(300)]
def requests():
    text = json.dumps(rows, indent=1)
    return [x for x in json.loads(text) if re.search(r"n(\d)\1?", x["name"])]
def table(found):
    out = io.StringIO()
    csv.DictWriter(out, rows[0]).writerows(found)
    return list(csv.reader(io.StringIO(out.getvalue())))
def database(found):
    d = sqlite3.connect(":memory:")
    d.execute("create table t(a, b, c, d)")
    d.executemany("insert into t values(?, ?, ?, ?)", found)
    return d.execute("select b, count(*), sum(d) from t group by b order by 2 desc").fetchall()
def page(found):
    e = tree.Element("page")
    for row in found: tree.SubElement(e, "row", name=str(row[0])).text = str(row[1:])
    return tree.fromstring(tree.tostring(e))
while time.process_time() < end:
    page(database(table(requests())))
"""
RUBY = r"""
require 'json'
require 'set'
rows = (0...400).map { |i| {id: i, name: "n#{i * 7919 % 997}", tags: %w[a b c], value: i / 7.0} }
limit = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + SECONDS
def parsed(rows) = JSON.parse(JSON.generate(rows))
def grouped(rows) = rows.group_by { |r| r['name'][1] }.transform_values { |v| v.sum { |r| r['value'] } }
def words(rows) = rows.flat_map { |r| r['name'].scan(/\d/) }.tally.sort_by { |k, v| [-v, k] }
def sets(rows) = rows.map { |r| r['tags'].to_set }.reduce(:|).map(&:upcase).sort
while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < limit
  all = parsed(rows)
  grouped(all); words(all); sets(all)
end
"""
SQL = r"""
import duckdb, time
end = time.process_time() + SECONDS
duckdb.execute("create table t as select i, hash(i) % 1000 g, md5(i::text) m, random() v from range(200000) r(i)")
while time.process_time() < end:
    duckdb.execute("select g, count(distinct m), sum(v), quantile(v, 0.9) from t group by g order by 3 desc").fetchall()
    duckdb.execute("select count(*) from t a join t b on a.m = b.m where regexp_matches(a.m, 'a[0-9]+b')").fetchall()
    duckdb.execute("select *, row_number() over (partition by g order by v) from t qualify row_number() over (order by m) < 50").fetchall()
"""


def commands(work, readers, seconds):
    """-> {name: command} of what this machine has. readers: an interpreter with DuckDB."""
    def script(name, text):
        path = os.path.join(work, name)
        with open(path, "w") as f:
            f.write(text.replace("SECONDS", str(seconds)))
        return path
    out = {"python": [sys.executable, script("work.py", PYTHON)], "duckdb": [readers, script("sql.py", SQL)]}
    unit = programs.big_file(work, 8 * seconds)
    for name, options in (("clang++", ["-O2"]), ("g++", ["-O1", "-g"])):
        if shutil.which(name):
            out[name] = [name, "-std=c++17", *options, "-c", "-o", "/dev/null", unit]
    if shutil.which("ruby"):
        out["ruby"] = ["ruby", script("work.rb", RUBY)]
    return out


def record(fusee, work, readers, seconds):
    """-> paths of the profiles."""
    paths = []
    for name, command in commands(work, readers, seconds).items():
        path = os.path.join(work, name + ".pb.gz")
        if not os.path.exists(path):
            done = subprocess.run([fusee, "record", "-q", "-F", "997", "-o", path + ".new.pb.gz", "--", *command],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if done.returncode:
                sys.exit("store: %s cannot be recorded: %s" % (name, done.stderr))
            os.rename(path + ".new.pb.gz", path)
        paths.append(path)
    return paths
