/* SPDX-License-Identifier: Apache-2.0 */
// sources: core/ui/selection.c core/ui/views.c core/ui/label_view.c core/ui/source_view.c
// sources: core/ui/function.c core/ui/annotated.c core/ui/graph_view.c core/ui/models.c
// sources: core/ui/tracks_view.c core/view/source_text.c core/net/http_query.c
// sources: core/pprof/*.c core/profile/build*.c core/profile/merge.c core/loss/*.c
// sources: core/profile/check.c core/profile/omit.c
// sources: core/report/*.c core/annotation/*.c core/export/flamegraph.c
// sources: core/base/[!al]*.c core/base/arena.c build/gen/profile.pb-c.c
// libs: -lprotobuf-c -ldeflate -lz -lm -lcrypto
/*
 * The views of fusee ui: the first line is the query, the rest a profile. A view is JSON without a
 * '<', or a sentence.
 */
#include "fuzz.h"

#include "pprof/pprof.h"
#include "profile/merge.h"
#include "ui/internal/selection.h"
#include "ui/internal/views.h"

static void check_view(int (*put)(const struct ui_view *, struct buf *), const struct ui_view *v)
{
	struct buf out = {0};
	int r = put(v, &out);

	must(!r || r == -EINVAL, "no other error");
	must(out.len, "it has an answer");
	if (!r) {
		must(out.p[0] == '{' && out.p[out.len - 1] == '}', "an object");
		must(!memchr(out.p, '<', out.len), "no element of HTML");
	}
	buf_fini(&out);
}

/* A part of the profile by its times. */
static void check_part(const struct fusee_profile *p, const struct ui_range *range)
{
	const struct merge_choice choice = {.from_ns = range->from_ns, .to_ns = range->to_ns};
	const struct fusee_profile *part;
	struct builder *b;

	must(!builder_new(&b) && !merge_begin(b, p), "it begins");
	must(!merge_add(b, p, &choice, NULL) && !builder_finish(b, &part), "it ends");
	must(part->times.n <= p->times.n, "no time is new");
	builder_free(b);
}

static void check_views(const struct fusee_profile *p, char *query)
{
	struct ui_selection s;
	struct buf error = {0};
	struct ui_view v;

	if (ui_selection_parse(&s, query, &error)) {
		must(error.len, "an error has its sentence");
		buf_fini(&error);
		return;
	}
	v = (struct ui_view){
		p, ui_side_is_empty(&s.base) ? NULL : p, s.o, NULL, 0, 0, 0, NULL, 0, s.threads};
	check_view(ui_about, &v);
	check_view(ui_table, &v);
	check_view(ui_callers, &v);
	check_view(ui_labels, &v);
	check_view(ui_source, &v);
	check_view(ui_graph, &v);
	check_view(ui_tracks, &v);
	check_part(p, &s.now.range);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = memchr(data, '\n', size);
	struct pprof_file *f = NULL;
	const char *text = NULL;
	char *query;

	if (!end)
		return 0;
	query = strndup((const char *)data, (size_t)(end - data));
	if (!query)
		abort();
	end++;
	if (!pprof_decode(end, size - (size_t)(end - data), &f, &text))
		check_views(pprof_profile(f), query);
	pprof_free(f);
	free(query);
	return 0;
}
