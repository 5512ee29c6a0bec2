/* SPDX-License-Identifier: Apache-2.0 */
/* The options of an instance. Encoded as one text, unique for each list, they are a part of keys
 * and are passed to the worker process. */
#ifndef PLUGIN_OPTION_LIST_H
#define PLUGIN_OPTION_LIST_H

#include "plugin/options.h"

struct instance_option {
	char *name;
	struct option_value value;
};

/* Frees n options and the array. */
void instance_option_list_free(struct instance_option *, uint32_t n);
/* "" for no options. Owned by the caller; NULL: no memory. */
char *option_text(const struct instance_option *, uint32_t n);
/* Decodes the text; the caller frees the list with instance_option_list_free(). 0, -EINVAL,
 * -ENOMEM: then there is no list. */
int option_text_read(const char *text, struct instance_option **list, uint32_t *n);
#endif
