/* SPDX-License-Identifier: Apache-2.0 */
#include "functions.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <fusee/emitted.h>
#include <fusee/unwinder.bpf.h>

#include "words.h"

struct process {
	struct fusee_emitted kept;
	void *functions, *places; /* trees, by key */
	struct ruby_library library;
};

struct place {
	struct fusee_emitted_element head;
	uint32_t line;
};

static void free_process(void *element)
{
	struct process *p = element;

	tdestroy(p->functions, free);
	tdestroy(p->places, free);
	free(p);
}

struct ruby_library *ruby_functions_library(void **processes, uint64_t process)
{
	struct process *p = fusee_emitted_process(processes, process, sizeof(*p));

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
	int r;

	memset(&f, 0, sizeof(f));
	if (n < offsetof(struct ruby_function, path) || n > sizeof(f))
		return -EBADMSG;
	memcpy(&f, bytes, n);
	if (f.label_bytes > sizeof(f.label) || f.class_bytes > sizeof(f.class_name) ||
	    f.path_bytes > n - offsetof(struct ruby_function, path))
		return -EBADMSG;
	label = label_of(&f, NULL);
	n = sizeof(*named) + label + f.path_bytes + 2u;
	if (fusee_emitted_has(&p->kept, &p->functions, key))
		return 0;
	r = fusee_emitted_new(&p->kept, &p->functions, key, n, &named);
	if (r <= 0)
		return r;
	text = (char *)(named + 1);
	*named = (struct ruby_named){{.key = key}, f.first_line, f.is_c, text, text + label + 1};
	label_of(&f, text);
	memcpy(text + label + 1, f.path, f.path_bytes);
	return fusee_emitted_keep_used(&p->kept, &p->functions, named, n, free);
}

static int add_place(struct process *p, uint64_t key, const unsigned char *bytes, uint64_t n)
{
	struct ruby_place emitted;
	struct place *place;
	int r;

	if (n != sizeof(emitted))
		return -EBADMSG;
	memcpy(&emitted, bytes, sizeof(emitted));
	if (fusee_emitted_has(&p->kept, &p->places, key))
		return 0;
	r = fusee_emitted_new(&p->kept, &p->places, key, sizeof(*place), &place);
	if (r <= 0)
		return r;
	place->line = emitted.line;
	return fusee_emitted_keep_used(&p->kept, &p->places, place, sizeof(*place), free);
}

int ruby_functions_add(void **processes, uint64_t process, uint32_t kind, uint64_t key,
		       const void *bytes, uint64_t n)
{
	struct process *p;

	if (kind != RUBY_FUNCTION && kind != RUBY_PLACE)
		return -EBADMSG;
	p = fusee_emitted_process(processes, process, sizeof(*p));
	if (!p)
		return -ENOMEM;
	return kind == RUBY_FUNCTION ? add_function(p, key, bytes, n) : add_place(p, key, bytes, n);
}

const struct ruby_named *ruby_functions_find(void *const *processes, uint64_t process, uint64_t key,
					     uint64_t pc, uint32_t *line)
{
	struct process *p = fusee_emitted_find(processes, process);
	const struct place *place = p ? fusee_emitted_use(&p->kept, &p->places, fusee_mix(key, pc))
				      : NULL;

	*line = place ? place->line : 0;
	return p ? fusee_emitted_use(&p->kept, &p->functions, key) : NULL;
}

uint64_t ruby_functions_forget(void *const *processes, uint64_t process, uint32_t what)
{
	struct process *p = fusee_emitted_find(processes, process);

	if (p && what == FUSEE_FORGET_BEGIN)
		fusee_emitted_forget_begin(&p->kept);
	if (!p || what != FUSEE_FORGET_UNUSED)
		return 0;
	return fusee_emitted_forget_unused(&p->kept, &p->functions, fusee_emitted_order, free) +
	       fusee_emitted_forget_unused(&p->kept, &p->places, fusee_emitted_order, free);
}

void ruby_functions_remove(void **processes, uint64_t process)
{
	struct process *p = fusee_emitted_remove(processes, process);

	if (p)
		free_process(p);
}

void ruby_functions_free(void **processes)
{
	tdestroy(*processes, free_process);
	*processes = NULL;
}
