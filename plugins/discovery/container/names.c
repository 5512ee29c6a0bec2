/* SPDX-License-Identifier: Apache-2.0 */
#include "names.h"

#include <ctype.h>
#include <stdlib.h>

#define BUCKETS 1024u
#define LABELS 32u /* that the core takes of a target */
#define KEY (CONTAINER_NAME + CONTAINER_ID + 16)

/* A known container; of its texts only the target's key is kept. */
struct known {
	struct known *next;
	uint64_t ended_ns; /* 0: it runs, or may run */
	uint32_t daemon, list;
	char *image; /* see names_set_image() */
	char key[];
};

struct names {
	const struct fusee_self *self;
	struct chosen_list chosen;
	struct known *buckets[BUCKETS]; /* by key */
	uint32_t n, list;
	uint64_t sweep_ns; /* when the next removal is due at the earliest; UINT64_MAX: never */
	bool warned_full;
};

struct names *container_names_open(const struct fusee_self *self, struct chosen_list chosen)
{
	struct names *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->self = self;
	n->chosen = chosen;
	n->sweep_ns = UINT64_MAX;
	return n;
}

static void free_known(struct known *k)
{
	free(k->image);
	free(k);
}

void container_names_close(struct names *n)
{
	if (!n)
		return;
	for (uint32_t i = 0; i < BUCKETS; i++)
		for (struct known *k = n->buckets[i], *next; k; k = next) {
			next = k->next;
			free_known(k);
		}
	free(n);
}

static struct known **place_of(struct names *n, const char *key)
{
	struct known **at = &n->buckets[fusee_text_hash(key) % BUCKETS];

	while (*at && strcmp((*at)->key, key))
		at = &(*at)->next;
	return at;
}

static void key_of(char key[KEY], uint32_t daemon, const char *space, const char *id)
{
	snprintf(key, KEY, "%u/%s/%s", daemon, space, id);
}

static struct known *find(struct names *n, uint32_t daemon, const char *space, const char *id)
{
	char key[KEY];

	key_of(key, daemon, space, id);
	return *place_of(n, key);
}

/* ---- targets ---- */

/* Whether the ID has the form that the cgroup discovery finds in paths. */
static bool is_path_id(const char *id)
{
	return strlen(id) == 64 && strspn(id, "0123456789abcdef") == 64;
}

/* Runtimes allow these characters in IDs. */
static bool is_id(const char *id)
{
	const char *c = id;

	while (isalnum((unsigned char)*c) || (*c && strchr("_.-", *c)))
		c++;
	return *id && !*c;
}

/* The container's name: in a pod its name there; a sandbox, which only holds a pod's namespaces,
 * has none. */
static const char *name_of(const struct container *c)
{
	if (*c->pod_container)
		return c->pod_container;
	if (c->sandbox)
		return "";
	return *c->name || is_path_id(c->id) ? c->name : c->id;
}

static int put_target(struct names *n, const char *key, const struct names_source *from,
		      const struct container *c)
{
	struct fusee_label labels[LABELS];
	struct fusee_target t = FUSEE_SIZED(struct fusee_target, .key = fusee_text(key),
					    .labels = {labels, 0, sizeof(labels[0])});

	if (is_path_id(c->id) || !*c->cgroup) {
		t.match = FUSEE_MATCH_LABEL;
		t.match_label = fusee_text_label("container_id", c->id);
	} else {
		t.match = FUSEE_MATCH_CGROUP;
		t.cgroup = fusee_text(c->cgroup);
	}
	fusee_add_label(&t.labels, LABELS, "container", name_of(c));
	fusee_add_label(&t.labels, LABELS, "image", c->image);
	fusee_add_label(&t.labels, LABELS, "namespace", c->namespace);
	fusee_add_label(&t.labels, LABELS, "pod", c->pod);
	fusee_add_label(&t.labels, LABELS, "container_runtime", from->runtime);
	for (uint32_t i = 0; i < n->chosen.n; i++)
		fusee_add_label(&t.labels, LABELS, n->chosen.at[i].name, c->values[i]);
	return n->self->host->discovery->put(n->self->in, &t);
}

/* ---- containers come and change ---- */

static bool is_full(struct names *n)
{
	if (n->n < NAMES_MAX)
		return false;
	fusee_count_by(n->self, "containers_ignored", "reason", "too many", 1);
	if (!n->warned_full)
		fusee_log(n->self, FUSEE_WARNING,
			  "there are more than %u containers: the others have no names", NAMES_MAX);
	n->warned_full = true;
	return true;
}

static struct known *add_known(struct names *n, struct known **at, const char *key)
{
	size_t size = strlen(key) + 1;
	struct known *k = calloc(1, sizeof(*k) + size);

	if (!k)
		return NULL;
	memcpy(k->key, key, size);
	*at = k;
	n->n++;
	return k;
}

int names_put(struct names *n, const struct names_source *from, const struct container *c)
{
	char key[KEY];
	struct known **at;

	if (!is_id(c->id)) {
		fusee_count_by(n->self, "containers_ignored", "reason", "wrong id", 1);
		return 0;
	}
	key_of(key, from->daemon, c->space, c->id);
	at = place_of(n, key);
	if (!*at && is_full(n))
		return 0;
	if (!*at && !add_known(n, at, key))
		return -ENOMEM;
	(*at)->daemon = from->daemon;
	(*at)->list = from->list;
	(*at)->ended_ns = 0;
	return put_target(n, key, from, c);
}

int names_set_image(struct names *n, uint32_t daemon, const char *space, const char *id,
		    const char *image)
{
	struct known *k = find(n, daemon, space, id);
	char *copy;

	if (!k)
		return 0;
	copy = strdup(image);
	if (!copy)
		return -ENOMEM;
	free(k->image);
	k->image = copy;
	return 0;
}

const char *names_image(struct names *n, uint32_t daemon, const char *space, const char *id)
{
	struct known *k = find(n, daemon, space, id);

	return k ? k->image : NULL;
}

/* ---- containers end ---- */

static void end_known(struct names *n, struct known *k, uint64_t now_ns)
{
	if (k->ended_ns)
		return;
	k->ended_ns = now_ns;
	if (n->sweep_ns > now_ns + NAMES_KEEP)
		n->sweep_ns = now_ns + NAMES_KEEP;
}

void names_end(struct names *n, uint32_t daemon, const char *space, const char *id, uint64_t now_ns)
{
	struct known *k = find(n, daemon, space, id);

	if (k)
		end_known(n, k, now_ns);
}

uint32_t names_begin_list(struct names *n)
{
	return ++n->list;
}

void names_end_list(struct names *n, uint32_t daemon, uint32_t list, uint64_t now_ns)
{
	for (uint32_t i = 0; i < BUCKETS; i++)
		for (struct known *k = n->buckets[i]; k; k = k->next)
			if (k->daemon == daemon && k->list != list)
				end_known(n, k, now_ns);
}

uint64_t names_sweep(struct names *n, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	if (now_ns < n->sweep_ns)
		return n->sweep_ns;
	for (uint32_t i = 0; i < BUCKETS; i++)
		for (struct known **at = &n->buckets[i], *k; (k = *at);) {
			uint64_t due = k->ended_ns ? k->ended_ns + NAMES_KEEP : UINT64_MAX;

			if (due > now_ns) {
				next = due < next ? due : next;
				at = &k->next;
				continue;
			}
			n->self->host->discovery->del(n->self->in, fusee_text(k->key));
			*at = k->next;
			free_known(k);
			n->n--;
		}
	n->sweep_ns = next;
	return next;
}

uint32_t names_count(const struct names *n)
{
	return n->n;
}
