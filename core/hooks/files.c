/* SPDX-License-Identifier: Apache-2.0 */
/* Which files have the path of a hook, and where its places are in them: each file is searched once
 * by a child process, a few at the same time. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "hooks/internal/state.h"

#define RETRY_NS 1000000000ull /* until a file is opened again; then twice as long, and so on */
#define RETRY_MAX_NS (RETRY_NS * 32)
#define DELETED " (deleted)"

/* ---- places ---- */

static void retire_places(struct hooks *h, struct hook_file *f)
{
	for (size_t i = 0; i < f->points.n; i++)
		h->places[f->points.at[i].number] = PLACE_RETIRED;
	probe_points_fini(&f->points);
}

/* Numbers its places. false: there are too many. */
static bool number_places(struct hooks *h, struct hook_file *f)
{
	uint32_t at = 1;

	for (size_t i = 0; i < f->points.n; i++) {
		struct probe_point *p = &f->points.at[i];

		while (at <= HOOK_PLACES && h->places[at] != PLACE_FREE)
			at++;
		if (at > HOOK_PLACES) {
			while (i-- > 0)
				h->places[f->points.at[i].number] = PLACE_FREE;
			return false;
		}
		h->places[at] = PLACE_USED;
		p->number = at;
		p->hook = f->hook->number;
		p->period = f->hook->period;
	}
	return true;
}

static void free_file(struct hooks *h, struct hook_file *f)
{
	for (uint32_t i = 0; i < SEARCHES; i++)
		if (h->searches[i].of == f)
			h->searches[i].of = NULL;
	retire_places(h, f);
	free(f);
}

static void end_search(struct hook_search *s)
{
	files_release(s->file);
	text_search_free(s->search);
	free(s->path);
	*s = (struct hook_search){0};
}

void hooks_forget_files(struct hooks *h, const struct hook *hook)
{
	for (size_t i = 0; i < h->nfiles; i++)
		for (struct hook_file **at = &h->files[i].first; *at;) {
			struct hook_file *f = *at;

			if (hook && f->hook != hook) {
				at = &f->next;
				continue;
			}
			*at = f->next;
			free_file(h, f);
		}
	for (uint32_t i = 0; !hook && i < SEARCHES; i++)
		if (h->searches[i].search)
			end_search(&h->searches[i]);
}

/* ---- searches ---- */

/* Sentences of searches begin with an empty path in quotes. */
static void fail_file(struct hook *hook, const char *path, int r, const char *why)
{
	const char *rest = why ? why : strerror(-r);
	char *text;

	if (!strncmp(rest, "''", 2))
		rest += rest[2] == ':' ? 4 : 3;
	hook->state.without++;
	if (asprintf(&text, "%s: %s", path, rest) < 0)
		text = NULL;
	hooks_failed(hook, text);
}

static void take(struct hooks *h, struct hook_search *s, struct hook_file *f, int r,
		 const char *why)
{
	f->state = FILE_KNOWN;
	if (r) {
		fail_file(f->hook, s->path, r, why);
		probe_points_fini(&f->points);
		return;
	}
	if (!number_places(h, f)) {
		probe_points_fini(&f->points);
		fail_file(f->hook, s->path, -E2BIG, "all probes have too many places");
		return;
	}
	f->hook->state.files++;
	log_debug("%s has %s: %zu places", s->path, f->hook->name, f->points.n);
}

void hooks_poll_searches(struct hooks *h)
{
	for (uint32_t i = 0; i < SEARCHES; i++) {
		struct hook_search *s = &h->searches[i];
		struct probe_points none = {0};
		char *why = NULL;
		int r = s->search
				? text_search_poll(s->search, s->of ? &s->of->points : &none, &why)
				: -EINPROGRESS;

		if (r != -EINPROGRESS) {
			if (s->of)
				take(h, s, s->of, r, why);
			end_search(s);
		}
		probe_points_fini(&none);
		free(why);
	}
}

static void begin(struct hooks *h, struct hook_file *f, struct file *file)
{
	struct hook_search *s = h->searches;
	int fd, r;

	while (s < h->searches + SEARCHES && s->search)
		s++;
	if (s == h->searches + SEARCHES)
		return;
	fd = files_hold(file);
	r = fd < 0 ? fd : text_search_start(&s->search, fd, &f->hook->parsed);
	if (fd >= 0 && r)
		files_release(file);
	if (r) {
		f->pause_ns = f->pause_ns ? f->pause_ns * 2 : RETRY_NS;
		f->pause_ns = f->pause_ns < RETRY_MAX_NS ? f->pause_ns : RETRY_MAX_NS;
		f->retry_ns = h->now + f->pause_ns;
		return;
	}
	s->file = file;
	s->of = f;
	s->path = strdup(file->path);
	f->state = FILE_SEARCHED;
}

/* ---- files ---- */

/* The name of a file whose name was given to another is followed by a remark. */
static bool is_path(const char *is, const char *path)
{
	size_t len = path ? strlen(path) : 0;

	return len && !strncmp(is, path, len) && (!is[len] || !strcmp(is + len, DELETED));
}

static bool has_hook(const struct hooked_file *f, const struct hook *hook)
{
	for (const struct hook_file *k = f->first; k; k = k->next)
		if (k->hook == hook)
			return true;
	return false;
}

static void look_at(struct hooks *h, struct hooked_file *f, const struct file *file)
{
	for (uint32_t i = 1; i <= MOST_HOOKS; i++) {
		struct hook *hook = h->at[i];
		struct hook_file *new;

		if (!hook || hook->retired_ns || !hook_is_of_file(hook) || has_hook(f, hook) ||
		    (!is_path(file->path, hook->parsed.path) &&
		     !is_path(file->path, hook->resolved)))
			continue;
		new = calloc(1, sizeof(*new));
		if (!new)
			return; /* at the next call */
		*new = (struct hook_file){
			.next = f->first, .hook = hook, .added_ns = file->added_ns};
		f->first = new;
	}
	f->plan = h->plan;
}

/* Of this file, or new. NULL: no memory. */
static struct hooked_file *hooked_file_of(struct hooks *h, const struct file *file)
{
	struct hooked_file *f;

	while (h->nfiles <= file->id) {
		if (!ARRAY_ROOM(h->files, h->nfiles, h->files_cap))
			return NULL;
		h->files[h->nfiles++] = (struct hooked_file){0};
	}
	f = &h->files[file->id];
	while (f->added_ns != file->added_ns && f->first) {
		struct hook_file *old = f->first;

		f->first = old->next;
		free_file(h, old);
	}
	if (f->added_ns != file->added_ns)
		*f = (struct hooked_file){.added_ns = file->added_ns};
	return f;
}

struct hook_file *hooks_file(struct hooks *h, struct file *file)
{
	struct hooked_file *f;

	if (file->state == FILE_MEMORY || !file->path || *file->path != '/')
		return NULL;
	f = hooked_file_of(h, file);
	if (!f)
		return NULL;
	if (f->plan != h->plan)
		look_at(h, f, file);
	for (struct hook_file *k = f->first; k; k = k->next)
		if (k->state == FILE_WAITS && file->source.readable && h->now >= k->retry_ns)
			begin(h, k, file);
	return f->first;
}
