/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a profile into a model; for model.c. */
#ifndef REPORT_SAMPLES_H
#define REPORT_SAMPLES_H

#include "base/arena.h"
#include "report/labels.h"
#include "report/model.h"

/* The tables of a model while they grow. An id in a dict less 1 is the index in the table. */
struct render_tables {
	struct dict functions, modules, groups;
	struct arena arena; /* has the frames of stacks */
	struct dict texts;  /* texts that no profile has; their addresses do not change */
	struct buf function_buf, module_buf, group_buf, frame_buf, stack_buf;
	struct buf scratch;
};

/* The samples of one value type that the filters keep, of the profile or of the base. 0, -ENOMEM,
 * or -EINVAL with a sentence in error->p. */
int render_read(struct render_model *, bool is_base, uint32_t type, const struct render_labels *,
		const struct render_options *, struct buf *error);
/* The module of each mapping of the profile or of the base. A mapping of the base is the module of
 * the profile that has its path and build ID, else its path; where each has one program, these are
 * one module. */
int render_modules(struct render_model *, bool is_base, uint32_t *module_of);
/* The module of a source file. UINT32_MAX: no memory. */
uint32_t render_source_module(struct render_model *, struct fusee_str path);
/* Sets `shown` of all functions. 0 or -ENOMEM. */
int render_show_names(struct render_model *);
/* If no function is shown by this name: shows by it the function that has it with its module, as
 * where more samples have functions of the same name. 0 or -ENOMEM. */
int render_show_as(struct render_model *, const char *name);
#endif
