/* SPDX-License-Identifier: Apache-2.0 */
#include "path.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include <fusee/helpers.h>

/* systemd.resource-control(5): the types of units that have control groups. */
static const char *const types[] = {"service", "scope", "slice", "socket", "mount", "swap"};

#define TYPES (sizeof(types) / sizeof(types[0]))

/* systemd.unit(5): "Unit names consist of ..". */
static bool is_unit_name(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr(":-_.\\@", name[i]))
			return false;
	return len > 0 && len < UNIT_NAME;
}

static const char *type_of(const char *name, size_t len)
{
	const char *dot = memrchr(name, '.', len);
	size_t n = dot ? (size_t)(name + len - dot - 1) : 0;

	if (!dot || dot == name || dot[-1] == '@' || !is_unit_name(name, len))
		return NULL; /* "getty@.service" is a template, no unit */
	for (size_t i = 0; i < TYPES; i++)
		if (n == strlen(types[i]) && !memcmp(dot + 1, types[i], n))
			return types[i];
	return NULL;
}

const char *unit_type(const char *unit)
{
	return type_of(unit, strlen(unit));
}

/* A component of a path. systemd puts '_' before names that would have a special meaning for the
 * kernel or cgroup tools (cg_escape()). */
struct component {
	const char *p;
	size_t len;
	const char *end; /* in the path: its end */
};

static bool next(const char *path, struct component *c)
{
	path += strspn(path, "/");
	c->p = path;
	c->len = strcspn(path, "/");
	c->end = path + c->len;
	if (c->len > 1 && *c->p == '_') {
		c->p++;
		c->len--;
	}
	return c->end > path;
}

/* Skips slices and copies the innermost. *c is the unit that follows, if there is one. */
static bool find_unit(const char **path, char slice[UNIT_NAME], struct component *c)
{
	while (next(*path, c)) {
		const char *type = type_of(c->p, c->len);

		*path = c->end;
		if (!type)
			return false;
		if (strcmp(type, "slice"))
			return true;
		fusee_text_copy(slice, UNIT_NAME, (struct fusee_str){c->p, c->len});
	}
	return false;
}

/* "machine-NAME.scope" of systemd-machined, "systemd-nspawn@NAME.service" of systemd-nspawn. */
static void find_machine(struct unit_path *u)
{
	static const struct {
		const char *start, *end;
	} forms[] = {{"machine-", ".scope"}, {"systemd-nspawn@", ".service"}};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		size_t start = strlen(forms[i].start), end = strlen(forms[i].end);
		size_t len = strlen(u->unit);

		if (len <= start + end || strncmp(u->unit, forms[i].start, start) ||
		    strcmp(u->unit + len - end, forms[i].end))
			continue;
		/* systemd.unit(5), "STRING ESCAPING": "\x2d" is "-" */
		fusee_unescape(u->machine, sizeof(u->machine),
			       (struct fusee_str){u->unit + start, len - start - end}, "\\x");
	}
}

static bool is_user_manager(const char *unit)
{
	return !strncmp(unit, "user@", 5) && strstr(unit, ".service");
}

bool unit_path_parse(const char *cgroup, struct unit_path *u)
{
	char user_slice[UNIT_NAME];
	const char *at = cgroup;
	struct component c;

	memset(u, 0, sizeof(*u));
	if (!find_unit(&at, u->slice, &c))
		return false;
	fusee_text_copy(u->unit, UNIT_NAME, (struct fusee_str){c.p, c.len});
	u->len = (size_t)(c.end - cgroup);
	find_machine(u);
	if (is_user_manager(u->unit) && find_unit(&at, user_slice, &c)) {
		fusee_text_copy(u->user_unit, UNIT_NAME, (struct fusee_str){c.p, c.len});
		u->len = (size_t)(c.end - cgroup);
	}
	return true;
}

/* The path of "ID:CONTROLLERS:PATH", if the controllers are those. */
static bool take_line(const char *line, size_t len, const char *controllers, char *out, size_t size)
{
	const char *first = memchr(line, ':', len), *second;
	size_t n;

	if (!first)
		return false;
	second = memchr(first + 1, ':', (size_t)(line + len - first - 1));
	if (!second || (size_t)(second - first - 1) != strlen(controllers) ||
	    memcmp(first + 1, controllers, strlen(controllers)))
		return false;
	n = (size_t)(line + len - second - 1);
	if (!n || n >= size)
		return false;
	memcpy(out, second + 1, n);
	out[n] = '\0';
	return true;
}

bool unit_path_of_process(const char *text, char *out, size_t size)
{
	static const char *const controllers[] = {"name=systemd", ""};
	bool found = false;

	for (size_t i = 0; i < 2; i++) {
		for (const char *line = text; *line;) {
			size_t len = strcspn(line, "\n");

			if (take_line(line, len, controllers[i], out, size)) {
				if (strcmp(out, "/") || i)
					return true;
				found = true;
			}
			line += len + (line[len] == '\n');
		}
	}
	return found;
}
