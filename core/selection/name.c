/* SPDX-License-Identifier: Apache-2.0 */
#include "selection/internal/name.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/guess.h"
#include "base/str.h"
#include "process/cgroup.h"
#include "target/labelset.h"

#define FAR 3u /* the score of a name that contains what was typed */

const char *const name_kinds[NAME_KINDS] = {"unit", "pod", "container"};

/* ---- what was typed ---- */

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n > m && !strcmp(text + n - m, end);
}

/* systemd.unit(5): the types of units. */
static bool has_type(const char *text)
{
	static const char *const types[] = {".service", ".socket",    ".device", ".mount",
					    ".swap",    ".automount", ".target", ".path",
					    ".timer",   ".slice",     ".scope"};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (ends_with(text, types[i]))
			return true;
	return false;
}

int name_init(struct name *n, enum name_kind kind, const char *typed)
{
	size_t len = strlen(typed);

	*n = (struct name){.kind = kind};
	if (!len || len + sizeof(".service") > sizeof(n->text))
		return -EINVAL;
	snprintf(n->text, sizeof(n->text), "%s%s", typed,
		 kind == NAME_UNIT && !has_type(typed) ? ".service" : "");
	return 0;
}

/* ---- what it means ---- */

static struct fusee_str label(const struct fusee_label *labels, uint32_t n, const char *key)
{
	for (uint32_t i = 0; i < n; i++)
		if (str_equal(labels[i].key, fusee_text(key)))
			return labels[i].str;
	return fusee_text("");
}

/* "getty@.service" is each of its instances. */
static bool is_unit(const char *text, struct fusee_str unit)
{
	const char *at = strstr(text, "@.");
	size_t before = at ? (size_t)(at + 1 - text) : 0, after = at ? strlen(at + 1) : 0;

	if (!at)
		return str_equal(unit, fusee_text(text));
	return unit.len > before + after && !memcmp(unit.p, text, before) &&
	       !memcmp(unit.p + unit.len - after, at + 1, after);
}

static bool is_pod(const char *text, const struct fusee_label *labels, uint32_t n)
{
	struct fusee_str pod = label(labels, n, "pod"), space = label(labels, n, "namespace");
	const char *slash = strchr(text, '/');

	if (!slash)
		return str_equal(pod, fusee_text(text)) ||
		       str_equal(label(labels, n, "pod_uid"), fusee_text(text));
	return str_equal(pod, fusee_text(slash + 1)) &&
	       str_equal(space, (struct fusee_str){text, (uint64_t)(slash - text)});
}

static bool is_container(const struct name *c, const struct fusee_label *labels, uint32_t n)
{
	struct fusee_str text = fusee_text(c->text);
	bool pod = !c->npods;

	for (uint32_t i = 0; i < c->npods && !pod; i++)
		pod = is_pod(c->pods[i].text, labels, n);
	return pod && (str_equal(label(labels, n, "container"), text) ||
		       str_equal(label(labels, n, "container_id"), text));
}

/* "/a.slice/a-b.slice": slices of the system's manager are in slices only. systemd puts '_' before
 * some names. */
static bool is_slice(const char *text, const char *cgroup)
{
	const char *last = "";

	while (*cgroup) {
		size_t len = strcspn(++cgroup, "/");

		if (len < 6 || memcmp(cgroup + len - 6, ".slice", 6))
			return false;
		last = cgroup;
		cgroup += len;
	}
	return !strcmp(last, text) || (*last == '_' && !strcmp(last + 1, text));
}

bool name_matches(const struct name *m, const char *cgroup, const struct fusee_label *labels,
		  uint32_t n)
{
	switch (m->kind) {
	case NAME_UNIT:
		return (ends_with(m->text, ".slice") && is_slice(m->text, cgroup)) ||
		       is_unit(m->text, label(labels, n, m->user ? "user_unit" : "unit"));
	case NAME_POD:
		return is_pod(m->text, labels, n);
	default:
		return is_container(m, labels, n);
	}
}

size_t name_group(const struct name *m, struct targets *targets, const char *cgroup)
{
	char part[CGROUP_MAX];
	size_t len = 0, all = strlen(cgroup);

	while (len < all && all < sizeof(part)) {
		const struct target_process p = {.cgroup = part, .name = ""};
		const struct fusee_label *labels;
		uint32_t n = 0;

		len += strspn(cgroup + len, "/");
		len += strcspn(cgroup + len, "/");
		memcpy(part, cgroup, len);
		part[len] = '\0';
		labels = targets_set(targets, targets_labels(targets, &p, NULL), &n);
		if (labels && name_matches(m, part, labels, n))
			return len;
	}
	return 0;
}

void name_describe(const struct name *m, const char *cgroup, const struct fusee_label *labels,
		   uint32_t n, char text[NAME_TEXT])
{
	struct fusee_str pod = label(labels, n, "pod"), space = label(labels, n, "namespace"),
			 id = label(labels, n, "container_id");

	if (m->kind != NAME_UNIT && pod.len)
		snprintf(text, NAME_TEXT, "%.*s/%.*s", (int)space.len, space.p, (int)pod.len,
			 pod.p);
	else if (m->kind != NAME_UNIT && id.len)
		snprintf(text, NAME_TEXT, "%.*s", id.len < 12 ? (int)id.len : 12, id.p);
	else
		snprintf(text, NAME_TEXT, "%.*s", (int)NAME_TEXT - 1, cgroup);
}

/* ---- near names ---- */

/* The smaller the nearer; UINT32_MAX: it is not near. */
static uint32_t score_of(const struct name *m, const char *candidate)
{
	const char *slash = m->kind == NAME_POD && !strchr(m->text, '/') ? strchr(candidate, '/')
									 : NULL;
	const char *typed = strrchr(m->text, '/');
	uint32_t d = guess_distance(m->text, slash ? slash + 1 : candidate);
	char stem[NAME_TEXT];

	typed = m->kind == NAME_POD && typed ? typed + 1 : m->text;
	snprintf(stem, sizeof(stem), "%s", typed);
	if (m->kind == NAME_UNIT)
		*strrchr(stem, '.') = '\0';
	if (d <= (strlen(stem) < 4 ? 1 : 2))
		return d;
	return *stem && strstr(candidate, stem) ? FAR : UINT32_MAX;
}

void name_offer(struct name_near *near, const char *candidate)
{
	uint32_t score = score_of(near->name, candidate), at = near->n;

	near->offered++;
	near->equal |= !strcmp(near->name->text, candidate);
	if (score == UINT32_MAX)
		return;
	while (at && near->scores[at - 1] > score)
		at--;
	if (at == NAME_MAX_NEAR)
		return;
	if (near->n < NAME_MAX_NEAR)
		near->n++;
	for (uint32_t i = near->n - 1; i > at; i--) {
		memcpy(near->near[i], near->near[i - 1], NAME_TEXT);
		near->scores[i] = near->scores[i - 1];
	}
	snprintf(near->near[at], NAME_TEXT, "%s", candidate);
	near->scores[at] = score;
}
