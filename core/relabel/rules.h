/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of relabeling, compiled: the fields and the checks are those of Prometheus'
 * relabel_config. */
#ifndef RELABEL_RULES_H
#define RELABEL_RULES_H

#include <stdint.h>

#include <fusee/plugin.h>

#include "relabel/regex.h"

#define RELABEL_MAX_RULES 128u

enum relabel_action {
	RELABEL_REPLACE,
	RELABEL_KEEP,
	RELABEL_DROP,
	RELABEL_KEEPEQUAL,
	RELABEL_DROPEQUAL,
	RELABEL_LABELMAP,
	RELABEL_LABELKEEP,
	RELABEL_LABELDROP,
	RELABEL_HASHMOD,
	RELABEL_LOWERCASE,
	RELABEL_UPPERCASE,
	RELABEL_ACTIONS
};
extern const char *const relabel_action_names[RELABEL_ACTIONS];

/* A rule as a user writes it. */
struct relabel_rule_text {
	char *action; /* capitals are small letters */
	struct fusee_table source_labels;
	char *separator, *regex;
	int64_t modulus;
	char *target_label, *replacement;
};
/* The fields of a rule as options, of enum fusee_option_type, with Prometheus' defaults. */
extern const struct fusee_table relabel_rule_options;

struct relabel_rule {
	enum relabel_action action;
	char **source_labels; /* nsource */
	uint32_t nsource;
	char *separator, *pattern, *target_label, *replacement;
	struct regex *regex;
	uint64_t modulus;
};

/* A list of rules. It does not change once it is made. */
struct relabel_rules {
	char *where; /* "fusee.lua:12" */
	struct relabel_rule *rules;
	uint32_t n;
};

struct relabel_rules *relabel_rules_new(const char *where); /* NULL: no memory */
void relabel_rules_free(struct relabel_rules *);            /* NULL is fine */
/* Compiles a rule and appends it. 0; -EINVAL with a malloc'ed sentence in *text about what is wrong
 * with it; -ENOMEM. */
int relabel_rules_add(struct relabel_rules *, const struct relabel_rule_text *, char **text);
#endif
