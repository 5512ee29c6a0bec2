/* SPDX-License-Identifier: Apache-2.0 */
/* The models of the latest selections: most of the time of an answer is that of its model. */
#ifndef UI_MODELS_H
#define UI_MODELS_H

#include "report/model.h"

#define UI_MAX_MODELS 2u

struct ui_view;

struct ui_models {
	struct {
		char *key; /* NULL: unused */
		struct render_model model;
		uint64_t used;
	} kept[UI_MAX_MODELS];
	uint64_t uses;
};

/* A model that is kept, or the caller's own. */
struct ui_model {
	const struct render_model *m;
	struct render_model own;
};

/* The model of the view with these options, until ui_model_close(). As render_model_make(). */
int ui_model_open(struct ui_model *, const struct ui_view *, const struct render_options *,
		  struct buf *error);
void ui_model_close(struct ui_model *);
/* Frees all: a profile was loaded or freed, so an equal address may be that of another. */
void ui_models_clear(struct ui_models *);
#endif
