/* SPDX-License-Identifier: Apache-2.0 */
/* The report for programs: functions with their values, stacks as indices of functions, losses. */
#include "report/report.h"

#include <inttypes.h>

#include "report/change.h"
#include "loss/comment.h"

static void put_member(struct buf *out, const char *name, struct fusee_str value)
{
	buf_printf(out, ",\"%s\":", name);
	render_json_string(out, value);
}

static const char *code_name(uint32_t code)
{
	static const char *const names[] = {
		[RENDER_PROGRAM] = "program",   [RENDER_LIBRARY] = "library",
		[RENDER_KERNEL] = "kernel",     [RENDER_RUNTIME] = "runtime",
		[RENDER_LANGUAGE] = "language", [RENDER_REASON] = "reason",
		[RENDER_LABEL] = "label"};

	return code < sizeof(names) / sizeof(*names) ? names[code] : "";
}

static void put_functions(const struct render_model *m, struct buf *out)
{
	buf_str(out, ",\n\"functions\":[");
	for (uint32_t i = 0; i < m->nfunctions; i++) {
		const struct render_function *f = &m->functions[i];

		buf_str(out, i ? ",\n{\"name\":" : "\n{\"name\":");
		render_json_string(out, f->name);
		put_member(out, "file", f->file);
		put_member(out, "library", f->library);
		put_member(out, "build_id", f->build_id);
		buf_printf(out,
			   ",\"line\":%u,\"code\":\"%s\",\"self\":%" PRId64 ",\"total\":%" PRId64,
			   f->start_line, code_name(f->code), f->self, f->total);
		if (m->base)
			buf_printf(out,
				   ",\"base_self\":%" PRId64 ",\"base_total\":%" PRId64
				   ",\"z_self\":%.3f,\"z_total\":%.3f",
				   f->base_self, f->base_total, render_z_self(m, f),
				   render_z_total(m, f));
		buf_str(out, "}");
	}
	buf_str(out, "]");
}

static void put_stacks(const struct render_model *m, struct buf *out)
{
	buf_str(out, ",\n\"stacks\":[");
	for (uint32_t i = 0; i < m->nstacks; i++) {
		const struct render_stack *s = &m->stacks[i];

		buf_printf(out, "%s\n{\"value\":%" PRId64, i ? "," : "", s->value);
		if (m->base)
			buf_printf(out, ",\"base\":%" PRId64, s->base);
		buf_str(out, ",\"frames\":[");
		for (uint32_t k = 0; k < s->n; k++)
			buf_printf(out, k ? ",%u" : "%u", m->frames[s->first + k].function);
		buf_str(out, "],\"labels\":");
		buf_add(out, m->groups[s->group].text.p, m->groups[s->group].text.len);
		buf_str(out, "}");
	}
	buf_str(out, "]");
}

static void put_losses(const struct fusee_profile *p, struct buf *out)
{
	buf_str(out, ",\n\"losses\":[");
	for (uint32_t i = 0; i < p->losses.n; i++) {
		const struct fusee_label *l = FUSEE_AT(struct fusee_label, p->losses, i);

		buf_printf(out, "%s{\"samples\":%" PRId64 ",\"stage\":\"%s\"", i ? "," : "", l->num,
			   loss_stage_text(pprof_loss_stage(l)));
		put_member(out, "reason", l->key);
		buf_str(out, "}");
	}
	buf_str(out, "],\n\"comments\":[");
	for (uint32_t i = 0; i < p->comments.n; i++) {
		buf_str(out, i ? "," : "");
		render_json_string(out, *FUSEE_AT(struct fusee_str, p->comments, i));
	}
	buf_str(out, "]");
}

int render_json(const struct fusee_profile *p, const struct fusee_profile *base,
		const struct render_options *options, struct buf *out)
{
	struct render_options o = *options;
	struct render_model m;
	int ret;

	o.grouping = RENDER_BY_SET;
	ret = render_model_make(&m, p, base, &o, out);

	if (ret)
		return ret;
	buf_str(out, "{\"type\":");
	render_json_string(out, m.type);
	put_member(out, "unit", m.unit);
	buf_printf(out, ",\"total\":%" PRId64, m.total);
	if (base)
		buf_printf(out, ",\"base_total\":%" PRId64, m.base_total);
	buf_printf(out, ",\"start_ns\":%" PRIu64 ",\"duration_ns\":%" PRIu64 ",\"period\":%" PRId64,
		   p->start_ns, p->duration_ns, p->period);
	put_functions(&m, out);
	put_stacks(&m, out);
	put_losses(p, out);
	buf_str(out, "}\n");
	render_model_free(&m);
	return out->error;
}
