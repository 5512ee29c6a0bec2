// SPDX-License-Identifier: Apache-2.0
#include "plugin/internal/secrets.h"

#include <stdlib.h>
#include <string.h>

struct secret_file {
	char *path;
	struct stat as; /* zeros: there was no file */
};

void secrets_init(struct secrets *s)
{
	*s = (struct secrets){.files = NULL};
	pthread_mutex_init(&s->lock, NULL);
}

void secrets_fini(struct secrets *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		free(s->files[i].path);
	free(s->files);
	pthread_mutex_destroy(&s->lock);
}

/* Under the lock. NULL: no memory, or there are too many. */
static struct secret_file *find(struct secrets *s, const char *path)
{
	struct secret_file *f;

	for (uint32_t i = 0; i < s->n; i++)
		if (!strcmp(s->files[i].path, path))
			return &s->files[i];
	if (!s->files)
		s->files = calloc(SECRETS_MAX, sizeof(*s->files));
	if (!s->files || s->n == SECRETS_MAX)
		return NULL;
	f = &s->files[s->n];
	f->path = strdup(path);
	s->n += f->path != NULL;
	return f->path ? f : NULL;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

void secrets_note(struct secrets *s, const char *path, const struct stat *as)
{
	const struct stat none = {0};
	struct secret_file *f;
	uint32_t n;

	pthread_mutex_lock(&s->lock);
	n = s->n;
	f = find(s, path);
	if (!as)
		as = &none;
	/* Another thread may read a changed file first: the change must still be reported to the
	 * sink's thread. */
	s->changed |= f && n == s->n && !is_same(&f->as, as);
	if (f)
		f->as = *as;
	pthread_mutex_unlock(&s->lock);
}

bool secrets_changed(struct secrets *s)
{
	bool changed;

	pthread_mutex_lock(&s->lock);
	changed = s->changed;
	s->changed = false;
	for (uint32_t i = 0; i < s->n; i++) {
		struct secret_file *f = &s->files[i];
		struct stat now;

		if (stat(f->path, &now))
			now = (struct stat){0};
		changed |= !is_same(&f->as, &now);
		f->as = now;
	}
	pthread_mutex_unlock(&s->lock);
	return changed;
}
