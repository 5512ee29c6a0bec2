/* SPDX-License-Identifier: Apache-2.0 */
#include "functions.h"

#include <errno.h>
#include <search.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <fusee/unwinder.bpf.h>

#include "words.h"

#define MOST_BYTES (64u << 20) /* of one process, which may be hostile */

struct process {
	uint64_t id;
	void *functions, *places; /* trees, by key */
	uint64_t bytes;
	struct ruby_library library;
};

struct place {
	uint64_t key;
	uint32_t line;
};

/* Every element of a tree begins with its 64-bit key. */
static int by_id(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void free_process(void *element)
{
	struct process *p = element;

	tdestroy(p->functions, free);
	tdestroy(p->places, free);
	free(p);
}

static void *find(void *const *tree, uint64_t id)
{
	void **node = tfind(&id, tree, by_id);

	return node ? *node : NULL;
}

/* Adds an element that is not yet in the tree, and owns it also on failure. NULL: its memory could
 * not be had. 0 or -ENOMEM. */
static int insert(void **tree, void *element)
{
	if (element && tsearch(element, tree, by_id))
		return 0;
	free(element);
	return -ENOMEM;
}

/* Finds or makes the process. NULL: no memory. */
static struct process *process_of(void **processes, uint64_t id)
{
	struct process *p = find(processes, id);

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (p)
		p->id = id;
	return insert(processes, p) ? NULL : p;
}

struct ruby_library *ruby_functions_library(void **processes, uint64_t process)
{
	struct process *p = process_of(processes, process);

	return p ? &p->library : NULL;
}

/* Writes the label, with the class before the method's name: "block in Class#method". Returns its
 * length; `to` may be NULL. The caller has checked that the texts are within the emission. */
static size_t label_of(const struct ruby_function *f, char *to)
{
	bool qualified = f->class_bytes && f->base_bytes && f->base_bytes <= f->label_bytes;
	size_t before = qualified ? (size_t)f->label_bytes - f->base_bytes : 0;
	size_t n = f->label_bytes + (qualified ? f->class_bytes + 1u : 0u);

	if (!to)
		return n;
	memcpy(to, f->label, before);
	to += before;
	if (qualified) {
		memcpy(to, f->class_name, f->class_bytes);
		to[f->class_bytes] = f->is_singleton ? '.' : '#';
		to += f->class_bytes + 1;
	}
	memcpy(to, f->label + before, f->label_bytes - before);
	return n;
}

static int add_function(struct process *p, uint64_t key, const unsigned char *bytes, uint64_t n)
{
	struct ruby_function f;
	struct ruby_named *named;
	size_t label;
	char *text;

	memset(&f, 0, sizeof(f));
	if (n < offsetof(struct ruby_function, path) || n > sizeof(f))
		return -EBADMSG;
	memcpy(&f, bytes, n);
	if (f.label_bytes > sizeof(f.label) || f.class_bytes > sizeof(f.class_name) ||
	    f.path_bytes > n - offsetof(struct ruby_function, path))
		return -EBADMSG;
	if (find(&p->functions, key))
		return 0;
	if (p->bytes + sizeof(*named) + n > MOST_BYTES)
		return -ENOSPC;
	label = label_of(&f, NULL);
	named = calloc(1, sizeof(*named) + label + f.path_bytes + 2u);
	if (!named)
		return -ENOMEM;
	text = (char *)(named + 1);
	*named = (struct ruby_named){key, f.first_line, f.is_c, text, text + label + 1};
	label_of(&f, text);
	memcpy(text + label + 1, f.path, f.path_bytes);
	n = sizeof(*named) + label + f.path_bytes + 2u;
	p->bytes += n;
	return insert(&p->functions, named) ? -ENOMEM : (int)n;
}

static int add_place(struct process *p, uint64_t key, const unsigned char *bytes, uint64_t n)
{
	struct ruby_place emitted;
	struct place *place;

	if (n != sizeof(emitted))
		return -EBADMSG;
	memcpy(&emitted, bytes, sizeof(emitted));
	if (find(&p->places, key))
		return 0;
	if (p->bytes + sizeof(*place) > MOST_BYTES)
		return -ENOSPC;
	place = malloc(sizeof(*place));
	if (place)
		*place = (struct place){key, emitted.line};
	p->bytes += sizeof(*place);
	return insert(&p->places, place) ? -ENOMEM : (int)sizeof(*place);
}

int ruby_functions_add(void **processes, uint64_t process, uint32_t kind, uint64_t key,
		       const void *bytes, uint64_t n)
{
	struct process *p;

	if (kind != RUBY_FUNCTION && kind != RUBY_PLACE)
		return -EBADMSG;
	p = process_of(processes, process);
	if (!p)
		return -ENOMEM;
	return kind == RUBY_FUNCTION ? add_function(p, key, bytes, n) : add_place(p, key, bytes, n);
}

const struct ruby_named *ruby_functions_find(void *const *processes, uint64_t process, uint64_t key,
					     uint64_t pc, uint32_t *line)
{
	struct process *p = find(processes, process);
	const struct place *place = p ? find(&p->places, fusee_mix(key, pc)) : NULL;

	*line = place ? place->line : 0;
	return p ? find(&p->functions, key) : NULL;
}

void ruby_functions_remove(void **processes, uint64_t process)
{
	struct process *p = find(processes, process);

	if (!p)
		return;
	tdelete(p, processes, by_id);
	free_process(p);
}

void ruby_functions_free(void **processes)
{
	tdestroy(*processes, free_process);
	*processes = NULL;
}
