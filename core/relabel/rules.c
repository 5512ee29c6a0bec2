// SPDX-License-Identifier: Apache-2.0
#include "relabel/rules.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guess.h"
#include "base/str.h"
#include "base/utf8.h"
#include "target/labelset.h"

const char *const relabel_action_names[RELABEL_ACTIONS] = {
	[RELABEL_REPLACE] = "replace",     [RELABEL_KEEP] = "keep",
	[RELABEL_DROP] = "drop",           [RELABEL_KEEPEQUAL] = "keepequal",
	[RELABEL_DROPEQUAL] = "dropequal", [RELABEL_LABELMAP] = "labelmap",
	[RELABEL_LABELKEEP] = "labelkeep", [RELABEL_LABELDROP] = "labeldrop",
	[RELABEL_HASHMOD] = "hashmod",     [RELABEL_LOWERCASE] = "lowercase",
	[RELABEL_UPPERCASE] = "uppercase"};

#define FIELD(f) offsetof(struct relabel_rule_text, f)

static const struct fusee_option fields[] = {
	{.name = "source_labels",
	 .type = FUSEE_LIST,
	 .offset = FIELD(source_labels),
	 .def = "",
	 .doc = "Names of labels, whose values are joined; a label that is missing is empty."},
	{.name = "separator",
	 .type = FUSEE_STRING,
	 .offset = FIELD(separator),
	 .def = ";",
	 .doc = "What is between two joined values."},
	{.name = "regex",
	 .type = FUSEE_STRING,
	 .offset = FIELD(regex),
	 .def = "(.*)",
	 .doc = "Must match the complete joined value, or label's name. RE2's syntax."},
	{.name = "target_label",
	 .type = FUSEE_STRING,
	 .offset = FIELD(target_label),
	 .def = "",
	 .doc = "The label that is set; of replace it may contain $1."},
	{.name = "replacement",
	 .type = FUSEE_STRING,
	 .offset = FIELD(replacement),
	 .def = "$1",
	 .doc = "The new value of replace, the new name of labelmap; $1, ${name} are groups of "
		"regex. An empty value removes the label."},
	{.name = "modulus",
	 .type = FUSEE_INT,
	 .offset = FIELD(modulus),
	 .def = "0",
	 .min = 0,
	 .max = INT64_MAX,
	 .doc = "Of hashmod: the joined value's hash modulo this is the new value."},
	{.name = "action",
	 .type = FUSEE_STRING,
	 .offset = FIELD(action),
	 .def = "replace",
	 .doc = "replace, keep, drop, keepequal, dropequal, labelmap, labelkeep, labeldrop, "
		"hashmod, lowercase or uppercase."},
};

const struct fusee_table relabel_rule_options = {fields, sizeof(fields) / sizeof(*fields),
						 sizeof(*fields)};

struct relabel_rules *relabel_rules_new(const char *where)
{
	struct relabel_rules *all = calloc(1, sizeof(*all));

	if (all)
		all->where = strdup(where);
	if (all && all->where)
		return all;
	free(all);
	return NULL;
}

static void rule_fini(struct relabel_rule *r)
{
	for (uint32_t i = 0; i < r->nsource; i++)
		free(r->source_labels[i]);
	free(r->source_labels);
	free(r->separator);
	free(r->pattern);
	free(r->target_label);
	free(r->replacement);
	regex_free(r->regex);
}

void relabel_rules_free(struct relabel_rules *all)
{
	if (!all)
		return;
	for (uint32_t i = 0; i < all->n; i++)
		rule_fini(&all->rules[i]);
	free(all->rules);
	free(all->where);
	free(all);
}

/* ---- checks ---- */

__attribute__((format(printf, 2, 3))) static int wrong(char **text, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	if (vasprintf(text, format, ap) < 0)
		*text = NULL;
	va_end(ap);
	return *text ? -EINVAL : -ENOMEM;
}

static int find_action(struct relabel_rule *r, const char *name, char **text)
{
	struct guess g = {.word = name};

	for (uint32_t i = 0; i < RELABEL_ACTIONS; i++) {
		if (!strcasecmp(relabel_action_names[i], name)) {
			r->action = (enum relabel_action)i;
			return 0;
		}
		guess_offer(&g, relabel_action_names[i]);
	}
	return wrong(text, "unknown action '%.80s'" GUESS_HINT, name,
		     GUESS_WORDS(g, ": it must be replace, keep, drop, keepequal, dropequal, "
				    "labelmap, labelkeep, labeldrop, hashmod, lowercase or "
				    "uppercase"));
}

static bool has_target(const struct relabel_rule *r)
{
	return r->action == RELABEL_REPLACE || r->action == RELABEL_HASHMOD ||
	       r->action == RELABEL_LOWERCASE || r->action == RELABEL_UPPERCASE ||
	       r->action == RELABEL_KEEPEQUAL || r->action == RELABEL_DROPEQUAL;
}

static size_t word_length(const char *p)
{
	size_t n = 0;

	while ((p[n] >= 'a' && p[n] <= 'z') || (p[n] >= 'A' && p[n] <= 'Z') || p[n] == '_' ||
	       (p[n] >= '0' && p[n] <= '9'))
		n++;
	return n;
}

/* A label's name in which $1 and ${1} may occur. */
static bool is_name_template(const char *p)
{
	bool first = true;

	for (; *p; first = false) {
		if (*p == '$') {
			bool braces = p[1] == '{';
			size_t len = word_length(p + 1 + braces);

			if (!len || (braces && p[2 + len] != '}'))
				return false;
			p += 1 + len + 2 * (size_t)braces;
		} else if (word_length(p) && !(first && *p >= '0' && *p <= '9')) {
			p++;
		} else {
			return false;
		}
	}
	return !first;
}

static bool is_name(const char *name)
{
	return labelset_name(fusee_text(name));
}

/* Fields that an action does not use must have their defaults. */
static int check_unused(const struct relabel_rule *r, char **text)
{
	const char *action = relabel_action_names[r->action];
	bool equal = r->action == RELABEL_KEEPEQUAL || r->action == RELABEL_DROPEQUAL;
	bool names = r->action == RELABEL_LABELKEEP || r->action == RELABEL_LABELDROP;
	const char *extra = NULL;

	if (names && r->nsource)
		extra = "source_labels";
	else if (names && *r->target_label)
		extra = "target_label";
	else if (equal && strcmp(r->pattern, "(.*)"))
		extra = "regex";
	else if ((equal || names) && r->modulus)
		extra = "modulus";
	else if ((equal || names) && strcmp(r->separator, ";"))
		extra = "separator";
	else if ((equal || names || r->action == RELABEL_LOWERCASE ||
		  r->action == RELABEL_UPPERCASE) &&
		 strcmp(r->replacement, "$1"))
		extra = "replacement";
	return extra ? wrong(text, "action '%s' has no '%s'", action, extra) : 0;
}

static int check(const struct relabel_rule *r, char **text)
{
	const char *action = relabel_action_names[r->action];

	for (uint32_t i = 0; i < r->nsource; i++)
		if (!is_name(r->source_labels[i]))
			return wrong(text, "'%.80s' in source_labels is no name of a label",
				     r->source_labels[i]);
	if (!utf8_valid(r->separator, strlen(r->separator)))
		return wrong(text, "separator is not UTF-8, as all values of labels are");
	if (!utf8_valid(r->replacement, strlen(r->replacement)))
		return wrong(text, "replacement is not UTF-8, as all values of labels are");
	if (r->action == RELABEL_HASHMOD && !r->modulus)
		return wrong(text, "action 'hashmod' requires 'modulus', at least 1");
	if (has_target(r) && !*r->target_label)
		return wrong(text, "action '%s' requires 'target_label'", action);
	if (has_target(r) && !(r->action == RELABEL_REPLACE && strchr(r->target_label, '$')
				       ? is_name_template(r->target_label)
				       : is_name(r->target_label)))
		return wrong(text, "target_label '%.80s' is no name of a label", r->target_label);
	if (r->action == RELABEL_LABELMAP && !is_name_template(r->replacement))
		return wrong(text, "replacement '%.80s' is no name of a label", r->replacement);
	return check_unused(r, text);
}

/* ---- compiling ---- */

static int copy_sources(struct relabel_rule *r, const struct fusee_table *names)
{
	r->source_labels = calloc(names->n + 1, sizeof(char *));
	for (uint32_t i = 0; r->source_labels && i < names->n; i++) {
		const struct fusee_str *name = FUSEE_AT(struct fusee_str, *names, i);

		r->source_labels[i] = strdup(name->p);
		if (!r->source_labels[i])
			return -ENOMEM;
		r->nsource++;
	}
	return r->source_labels ? 0 : -ENOMEM;
}

static int compile(struct relabel_rule *r, const struct relabel_rule_text *from, char **text)
{
	int err = find_action(r, from->action, text);

	if (err)
		return err;
	r->modulus = (uint64_t)from->modulus;
	r->separator = strdup(from->separator);
	r->pattern = strdup(from->regex);
	r->target_label = strdup(from->target_label);
	r->replacement = strdup(from->replacement);
	if (!r->separator || !r->pattern || !r->target_label || !r->replacement)
		return -ENOMEM;
	err = copy_sources(r, &from->source_labels);
	if (!err)
		err = check(r, text);
	return err ? err : regex_new(&r->regex, from->regex, text);
}

int relabel_rules_add(struct relabel_rules *all, const struct relabel_rule_text *from, char **text)
{
	struct relabel_rule rule = {0}, *more;
	int err;

	*text = NULL;
	if (all->n == RELABEL_MAX_RULES)
		return wrong(text, "a list has more than %u rules", RELABEL_MAX_RULES);
	err = compile(&rule, from, text);
	more = err ? NULL : realloc(all->rules, (all->n + 1) * sizeof(*more));
	if (!more) {
		rule_fini(&rule);
		return err ? err : -ENOMEM;
	}
	all->rules = more;
	all->rules[all->n++] = rule;
	return 0;
}
