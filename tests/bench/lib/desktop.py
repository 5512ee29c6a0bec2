# SPDX-License-Identifier: Apache-2.0
"""Debian's chromium and LibreOffice without a screen, each with some seconds of work: their commands."""
import os
import shutil

PAGE = """<!DOCTYPE html><title>work</title><body><div id=to></div><script>
const to = document.getElementById("to"), end = performance.now() + %d;
function rows(n) { return Array.from({length: n}, (_, i) => ({k: i * 7919 %% 1013, s: "row " + i})); }
function fill(all) {
	to.innerHTML = "<table>" + all.map(r => `<tr><td>${r.k}<td style="padding:${r.k %% 7}px"><b>${r.s}</b>`).join("") + "</table>";
	return to.offsetHeight;
}
let sum = 0;
while (performance.now() < end) {
	const all = rows(300).sort((a, b) => a.k - b.k || a.s.localeCompare(b.s));
	sum += fill(all) + JSON.stringify(JSON.parse(JSON.stringify(all))).replace(/row (\\d)/g, "$1-").length;
	for (const b of to.querySelectorAll("td b"))
		b.className = "x" + b.textContent.length;
	sum += to.scrollWidth;
}
to.textContent = "sum " + sum;
</script>
"""


def chromium(work, seconds):
    """-> the command, or None and what to install."""
    path = shutil.which("chromium")
    if not path:
        return None, "apt install chromium"
    page = os.path.join(work, "page.html")
    with open(page, "w") as f:
        f.write(PAGE % (seconds * 1000))
    return [path, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + os.path.join(work, "chromium"), "--dump-dom",
            "file://" + page], None


def libreoffice(work, seconds):
    """A table with numbers, texts and sums becomes pages; some 1,500 rows are a second's work."""
    path = shutil.which("soffice")
    if not path:
        return None, "apt install libreoffice-calc-nogui libreoffice-writer-nogui"
    table = os.path.join(work, "table.csv")
    with open(table, "w") as f:
        for i in range(1, int(1500 * seconds) + 1):
            f.write("name %d,%d,%d.5,2026-11-%02d,=B%d*C%d,=SUM(B1:B%d)\n" % (i * 7919 % 1013, i, i % 97, i % 28 + 1, i, i, i))
    return [path, "-env:UserInstallation=file://" + os.path.join(work, "office"), "--headless", "--convert-to", "pdf", "--outdir", work,
            table], None
