/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/internal/models.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ui/internal/views.h"

static void put_text(struct buf *key, const char *text)
{
	buf_printf(key, "%zu:%s", text ? strlen(text) + 1 : 0, text ? text : "");
}

/* Appends all that the model depends on. */
static int put_key(struct buf *key, const struct ui_view *v, const struct render_options *o)
{
	buf_printf(key, "%p %p %d ", (const void *)v->p, (const void *)v->base, o->native);
	put_text(key, o->type);
	put_text(key, o->function);
	put_text(key, o->by);
	for (uint32_t i = 0; o->where[i]; i++)
		put_text(key, o->where[i]);
	return buf_add(key, "", 1);
}

/* Makes the model at place `at`, instead of the model that is there. Owns the key. */
static int keep(struct ui_models *k, uint32_t at, char *key, struct ui_model *m,
		const struct ui_view *v, const struct render_options *o, struct buf *error)
{
	int r;

	if (k->kept[at].key) {
		render_model_free(&k->kept[at].model);
		free(k->kept[at].key);
		k->kept[at].key = NULL;
	}
	r = render_model_make(&k->kept[at].model, v->p, v->base, o, error);
	if (r) {
		free(key);
		return r;
	}
	k->kept[at].key = key;
	k->kept[at].used = ++k->uses;
	m->m = &k->kept[at].model;
	return 0;
}

int ui_model_open(struct ui_model *m, const struct ui_view *v, const struct render_options *o,
		  struct buf *error)
{
	struct ui_models *k = v->models;
	struct buf key = {0};
	uint32_t oldest = 0;
	int r;

	m->m = &m->own;
	if (!k)
		return render_model_make(&m->own, v->p, v->base, o, error);
	r = put_key(&key, v, o);
	for (uint32_t i = 0; !r && i < UI_MAX_MODELS; i++) {
		if (k->kept[i].key && !strcmp(k->kept[i].key, key.p)) {
			k->kept[i].used = ++k->uses;
			m->m = &k->kept[i].model;
			buf_fini(&key);
			return 0;
		}
		if (k->kept[i].used < k->kept[oldest].used)
			oldest = i;
	}
	if (!r)
		return keep(k, oldest, key.p, m, v, o, error);
	buf_fini(&key);
	return r;
}

void ui_model_close(struct ui_model *m)
{
	if (m->m == &m->own)
		render_model_free(&m->own);
}

void ui_models_clear(struct ui_models *k)
{
	for (uint32_t i = 0; i < UI_MAX_MODELS; i++) {
		if (k->kept[i].key)
			render_model_free(&k->kept[i].model);
		free(k->kept[i].key);
		k->kept[i].key = NULL;
	}
}
