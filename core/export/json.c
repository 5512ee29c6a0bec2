/* SPDX-License-Identifier: Apache-2.0 */
/* The report for programs: functions with their values, stacks as indices of functions, losses. */
#include "report/report.h"

#include "base/json.h"
#include "report/change.h"
#include "loss/comment.h"

static const char *code_name(uint32_t code)
{
	static const char *const names[] = {
		[RENDER_PROGRAM] = "program",   [RENDER_LIBRARY] = "library",
		[RENDER_KERNEL] = "kernel",     [RENDER_RUNTIME] = "runtime",
		[RENDER_LANGUAGE] = "language", [RENDER_REASON] = "reason",
		[RENDER_LABEL] = "label"};

	return code < sizeof(names) / sizeof(*names) ? names[code] : "";
}

static void put_functions(const struct render_model *m, struct json *j)
{
	json_list(json_line(j, 0), "functions");
	for (uint32_t i = 0; i < m->nfunctions; i++) {
		const struct render_function *f = &m->functions[i];

		json_open(json_line(j, 0), NULL);
		json_str(j, "name", f->name);
		json_str(j, "file", f->file);
		json_str(j, "library", f->library);
		json_str(j, "build_id", f->build_id);
		json_uint(j, "line", f->start_line);
		json_text(j, "code", code_name(f->code));
		json_int(j, "self", f->self);
		json_int(j, "total", f->total);
		if (m->base) {
			json_int(j, "base_self", f->base_self);
			json_int(j, "base_total", f->base_total);
			json_printf(j, "z_self", "%.3f", render_z_self(m, f));
			json_printf(j, "z_total", "%.3f", render_z_total(m, f));
			json_flag(j, "chance", render_is_noise(m, f));
		}
		json_end(j);
	}
	json_end(j);
}

static void put_stacks(const struct render_model *m, struct json *j)
{
	json_list(json_line(j, 0), "stacks");
	for (uint32_t i = 0; i < m->nstacks; i++) {
		const struct render_stack *s = &m->stacks[i];
		struct fusee_str labels = m->groups[s->group].text;

		json_open(json_line(j, 0), NULL);
		json_int(j, "value", s->value);
		if (m->base)
			json_int(j, "base", s->base);
		json_list(j, "frames");
		for (uint32_t k = 0; k < s->n; k++)
			json_uint(j, NULL, render_frame_at(m, s, k)->function);
		json_end(j);
		json_printf(j, "labels", "%.*s", (int)labels.len, labels.p);
		json_end(j);
	}
	json_end(j);
}

static void put_losses(const struct fusee_profile *p, struct json *j)
{
	json_list(json_line(j, 0), "losses");
	for (uint32_t i = 0; i < p->losses.n; i++) {
		const struct fusee_label *l = FUSEE_AT(struct fusee_label, p->losses, i);

		json_open(j, NULL);
		json_int(j, "samples", l->num);
		json_text(j, "stage", loss_stage_text(loss_stage_of(l)));
		json_str(j, "reason", l->key);
		json_end(j);
	}
	json_end(j);
	json_list(json_line(j, 0), "comments");
	for (uint32_t i = 0; i < p->comments.n; i++)
		json_str(j, NULL, *FUSEE_AT(struct fusee_str, p->comments, i));
	json_end(j);
}

int render_json(const struct fusee_profile *p, const struct fusee_profile *base,
		const struct render_options *options, struct buf *out)
{
	struct render_options o = *options;
	struct json j = {.out = out};
	struct render_model m;
	int ret;

	o.grouping = RENDER_BY_SET;
	ret = render_model_make(&m, p, base, &o, out);

	if (ret)
		return ret;
	json_open(&j, NULL);
	json_str(&j, "type", m.type);
	json_str(&j, "unit", m.unit);
	json_int(&j, "total", m.total);
	if (base)
		json_int(&j, "base_total", m.base_total);
	json_uint(&j, "start_ns", p->start_ns);
	json_uint(&j, "duration_ns", p->duration_ns);
	json_int(&j, "period", p->period);
	put_functions(&m, &j);
	put_stacks(&m, &j);
	put_losses(p, &j);
	json_end(&j);
	buf_str(out, "\n");
	render_model_free(&m);
	return out->error;
}
