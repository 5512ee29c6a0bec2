/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/internal/assets.h"

#include <stddef.h>

#include "base/embed.h"
#include "report/report.h"

#define PAGE "core/ui/page/"
#define SCRIPT "text/javascript; charset=utf-8"
#define STYLE "text/css; charset=utf-8"

EMBED(ui_html, PAGE "ui.html");
EMBED(ui_css, PAGE "ui.css");
EMBED(ui_main, PAGE "main.js");
EMBED(ui_address, PAGE "address.js");
EMBED(ui_data, PAGE "data.js");
EMBED(ui_element, PAGE "element.js");
EMBED(ui_files, PAGE "files.js");
EMBED(ui_graph, PAGE "graph.js");
EMBED(ui_labels_js, PAGE "labels.js");
EMBED(ui_table_js, PAGE "table.js");
EMBED(ui_callers_js, PAGE "callers.js");
EMBED(ui_source_js, PAGE "source.js");
EMBED(ui_code_js, PAGE "code.js");
EMBED(ui_hottest, PAGE "hottest.js");
EMBED(ui_calls, PAGE "calls.js");
EMBED(ui_layout, PAGE "layout.js");
EMBED(ui_share, PAGE "share.js");
EMBED(ui_time_js, PAGE "time.js");
EMBED(ui_chart, PAGE "chart.js");
EMBED(ui_brush, PAGE "brush.js");
EMBED(ui_follow, PAGE "follow.js");
EMBED(ui_tracks_js, PAGE "tracks.js");
EMBED(ui_numbers, "ui_numbers.js"); /* generated from the flame graph's script */

const struct ui_asset ui_assets[] = {
	{"", "text/html; charset=utf-8", ui_html, ui_html_end},
	{"ui.css", STYLE, ui_css, ui_css_end},
	{"main.js", SCRIPT, ui_main, ui_main_end},
	{"address.js", SCRIPT, ui_address, ui_address_end},
	{"data.js", SCRIPT, ui_data, ui_data_end},
	{"element.js", SCRIPT, ui_element, ui_element_end},
	{"files.js", SCRIPT, ui_files, ui_files_end},
	{"graph.js", SCRIPT, ui_graph, ui_graph_end},
	{"labels.js", SCRIPT, ui_labels_js, ui_labels_js_end},
	{"table.js", SCRIPT, ui_table_js, ui_table_js_end},
	{"callers.js", SCRIPT, ui_callers_js, ui_callers_js_end},
	{"source.js", SCRIPT, ui_source_js, ui_source_js_end},
	{"code.js", SCRIPT, ui_code_js, ui_code_js_end},
	{"hottest.js", SCRIPT, ui_hottest, ui_hottest_end},
	{"calls.js", SCRIPT, ui_calls, ui_calls_end},
	{"layout.js", SCRIPT, ui_layout, ui_layout_end},
	{"share.js", SCRIPT, ui_share, ui_share_end},
	{"time.js", SCRIPT, ui_time_js, ui_time_js_end},
	{"chart.js", SCRIPT, ui_chart, ui_chart_end},
	{"brush.js", SCRIPT, ui_brush, ui_brush_end},
	{"follow.js", SCRIPT, ui_follow, ui_follow_end},
	{"tracks.js", SCRIPT, ui_tracks_js, ui_tracks_js_end},
	{"numbers.js", SCRIPT, ui_numbers, ui_numbers_end},
	{"flamegraph.css", STYLE, NULL, NULL},
	{"flamegraph.js", SCRIPT, NULL, NULL},
	{0},
};

struct fusee_str ui_asset_text(const struct ui_asset *a)
{
	if (!a->text)
		return render_flamegraph_file(a->name);
	return (struct fusee_str){a->text, (uint64_t)(a->end - a->text)};
}
