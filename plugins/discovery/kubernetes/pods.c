/* SPDX-License-Identifier: Apache-2.0 */
#include "pods.h"

#include <fusee/bytes.h>
#include <stdlib.h>

#define BUCKETS 256u
#define LABELS 32u /* that the core takes of a target: 8 and PODS_CHOSEN */
#define KEY (POD_NAME + 16)

/* Of a pod only the keys of its targets are kept, because each change contains the complete pod. */
struct known_container {
	char id[POD_CONTAINER_ID];
	uint64_t deleted_ns; /* 0: it exists */
	bool seen;           /* in the state that is being put */
};

struct known {
	struct known *next;
	char uid[POD_NAME];
	uint64_t deleted_ns; /* 0: it exists */
	uint32_t list;       /* the list that it was last put in */
	uint32_t ncontainers;
	uint64_t room;
	struct known_container *containers;
};

struct pods {
	const struct fusee_self *self;
	const struct chosen *chosen;
	uint32_t nchosen;
	struct known *buckets[BUCKETS]; /* by uid */
	uint32_t n, list;
	uint64_t sweep_ns; /* when the next removal is due at the earliest; UINT64_MAX: never */
	bool warned_full;
};

struct pods *pods_open(const struct fusee_self *self, const struct chosen *chosen, uint32_t nchosen)
{
	struct pods *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->self = self;
	p->chosen = chosen;
	p->nchosen = nchosen;
	p->sweep_ns = UINT64_MAX;
	return p;
}

static void free_known(struct known *k)
{
	free(k->containers);
	free(k);
}

void pods_close(struct pods *p)
{
	if (!p)
		return;
	for (uint32_t i = 0; i < BUCKETS; i++)
		for (struct known *k = p->buckets[i], *next; k; k = next) {
			next = k->next;
			free_known(k);
		}
	free(p);
}

static struct known **place_of(struct pods *p, const char *uid)
{
	struct known **at = &p->buckets[fusee_text_hash(uid) % BUCKETS];

	while (*at && strcmp((*at)->uid, uid))
		at = &(*at)->next;
	return at;
}

/* ---- targets ---- */

static void key_of(char key[KEY], const char *kind, const char *id)
{
	snprintf(key, KEY, "%s/%s", kind, id);
}

/* The labels that all containers of a pod have. */
static void add_pod(struct pods *p, struct fusee_table *t, const struct pod *pod,
		    char workload[POD_NAME])
{
	const char *kind;

	fusee_add_label(t, LABELS, "namespace", pod->namespace);
	fusee_add_label(t, LABELS, "pod", pod->name);
	fusee_add_label(t, LABELS, "node", pod->node);
	if (pod_workload(pod, &kind, workload)) {
		fusee_add_label(t, LABELS, "workload", workload);
		fusee_add_label(t, LABELS, "workload_kind", kind);
	}
	for (uint32_t i = 0; i < p->nchosen; i++)
		fusee_add_label(t, LABELS, p->chosen[i].name, pod->values[i]);
}

static int put_target(struct pods *p, const struct pod *pod, const struct container *c)
{
	static const char *const kinds[] = {[CONTAINER_MAIN] = "",
					    [CONTAINER_INIT] = "init",
					    [CONTAINER_SIDECAR] = "sidecar",
					    [CONTAINER_EPHEMERAL] = "ephemeral"};
	struct fusee_label labels[LABELS];
	char key[KEY], workload[POD_NAME];
	struct fusee_target t = FUSEE_SIZED(struct fusee_target, .match = FUSEE_MATCH_LABEL,
					    .labels = {labels, 0, sizeof(labels[0])});

	if (c) {
		key_of(key, "container", c->id);
		t.match_label = fusee_text_label("container_id", c->id);
		fusee_add_label(&t.labels, LABELS, "container", c->name);
		fusee_add_label(&t.labels, LABELS, "container_kind", kinds[c->kind]);
		fusee_add_label(&t.labels, LABELS, "image", c->image);
	} else {
		key_of(key, "pod", pod->uid);
		t.match_label = fusee_text_label("pod_uid",
						 *pod->static_uid ? pod->static_uid : pod->uid);
	}
	t.key = fusee_text(key);
	add_pod(p, &t.labels, pod, workload);
	return p->self->host->discovery->put(p->self->in, &t);
}

static void del_target(struct pods *p, const char *kind, const char *id)
{
	char key[KEY];

	key_of(key, kind, id);
	p->self->host->discovery->del(p->self->in, fusee_text(key));
}

/* ---- pods come and change ---- */

static bool is_full(struct pods *p)
{
	if (p->n < PODS_MAX)
		return false;
	fusee_count(p->self, "pods_ignored", 1);
	if (!p->warned_full)
		fusee_log(p->self, FUSEE_WARNING,
			  "this node has more than %u pods: the others have no labels", PODS_MAX);
	p->warned_full = true;
	return true;
}

static struct known *find_or_add(struct pods *p, const char *uid)
{
	struct known **at = place_of(p, uid);

	if (!*at && (*at = calloc(1, sizeof(**at)))) {
		snprintf((*at)->uid, sizeof((*at)->uid), "%s", uid);
		p->n++;
	}
	return *at;
}

static struct known_container *container_of(struct known *k, const char *id)
{
	struct known_container *c;

	for (uint32_t i = 0; i < k->ncontainers; i++)
		if (!strcmp(k->containers[i].id, id))
			return &k->containers[i];
	if (!fusee_grow(&k->containers, &k->room, k->ncontainers + 1ull, sizeof(*c)))
		return NULL;
	c = &k->containers[k->ncontainers++];
	*c = (struct known_container){0};
	snprintf(c->id, sizeof(c->id), "%s", id);
	return c;
}

static void expect_sweep(struct pods *p, uint64_t now_ns)
{
	if (p->sweep_ns > now_ns + PODS_KEEP)
		p->sweep_ns = now_ns + PODS_KEEP;
}

static int put_containers(struct pods *p, struct known *k, const struct pod *pod, uint64_t now_ns)
{
	int r = 0;

	for (uint32_t i = 0; i < k->ncontainers; i++)
		k->containers[i].seen = false;
	for (uint32_t i = 0; !r && i < pod->ncontainers; i++) {
		const struct container *c = &pod->containers[i];
		struct known_container *of = *c->id ? container_of(k, c->id) : NULL;

		if (!*c->id)
			continue;
		if (!of)
			return -ENOMEM;
		of->seen = true;
		of->deleted_ns = 0;
		r = put_target(p, pod, c);
	}
	/* a restarted container has another ID */
	for (uint32_t i = 0; i < k->ncontainers; i++)
		if (!k->containers[i].seen && !k->containers[i].deleted_ns) {
			k->containers[i].deleted_ns = now_ns;
			expect_sweep(p, now_ns);
		}
	return r;
}

int pods_put(struct pods *p, const struct pod *pod, uint64_t now_ns)
{
	struct known *k;
	int r;

	if (!*pod->uid || (!*place_of(p, pod->uid) && is_full(p)))
		return 0;
	k = find_or_add(p, pod->uid);
	if (!k)
		return -ENOMEM;
	k->list = p->list;
	k->deleted_ns = 0;
	r = put_target(p, pod, NULL);
	return r ? r : put_containers(p, k, pod, now_ns);
}

/* ---- pods end ---- */

static void delete_known(struct pods *p, struct known *k, uint64_t now_ns)
{
	if (k->deleted_ns)
		return;
	k->deleted_ns = now_ns;
	for (uint32_t i = 0; i < k->ncontainers; i++)
		if (!k->containers[i].deleted_ns)
			k->containers[i].deleted_ns = now_ns;
	expect_sweep(p, now_ns);
}

void pods_delete(struct pods *p, const char *uid, uint64_t now_ns)
{
	struct known *k = *place_of(p, uid);

	if (k)
		delete_known(p, k, now_ns);
}

void pods_begin_list(struct pods *p)
{
	p->list++;
}

void pods_end_list(struct pods *p, uint64_t now_ns)
{
	for (uint32_t i = 0; i < BUCKETS; i++)
		for (struct known *k = p->buckets[i]; k; k = k->next)
			if (k->list != p->list)
				delete_known(p, k, now_ns);
}

/* true: it is due now; otherwise sets *next to the time when it will be, if that is earlier. */
static bool is_due(uint64_t deleted_ns, uint64_t now_ns, uint64_t *next)
{
	if (!deleted_ns)
		return false;
	if (now_ns >= deleted_ns + PODS_KEEP)
		return true;
	if (*next > deleted_ns + PODS_KEEP)
		*next = deleted_ns + PODS_KEEP;
	return false;
}

static void sweep_containers(struct pods *p, struct known *k, uint64_t now_ns, uint64_t *next)
{
	for (uint32_t i = k->ncontainers; i-- > 0;)
		if (is_due(k->containers[i].deleted_ns, now_ns, next)) {
			del_target(p, "container", k->containers[i].id);
			k->containers[i] = k->containers[--k->ncontainers];
		}
}

uint64_t pods_sweep(struct pods *p, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	if (now_ns < p->sweep_ns)
		return p->sweep_ns;
	for (uint32_t i = 0; i < BUCKETS; i++)
		for (struct known **at = &p->buckets[i], *k; (k = *at);) {
			sweep_containers(p, k, now_ns, &next);
			if (!is_due(k->deleted_ns, now_ns, &next)) {
				at = &k->next;
				continue;
			}
			del_target(p, "pod", k->uid);
			*at = k->next;
			free_known(k);
			p->n--;
		}
	p->sweep_ns = next;
	return next;
}

uint32_t pods_count(const struct pods *p)
{
	return p->n;
}
