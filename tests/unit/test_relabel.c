// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/relabel core/base
/* Rules of relabeling. FUSEE_RELABEL_TABLE names a table of tests/relabel/table.go in place of
 * tests/data/relabel.txt: what Prometheus' own package makes of rules and patterns at random. */

#include "base/str.h"
#include "target/labelset.h"
#include "relabel/relabel.h"
#include "relabel/relabeler.h"
#include "test.h"

/* ---- the table ---- */

#define MAX_FIELDS 32

struct table {
	FILE *f;
	char *line;
	size_t cap;
	char *fields[MAX_FIELDS];
	uint32_t n, number;
	uint32_t limited; /* cases that need more steps than a match may take */
};

static void unescape(char *p)
{
	char *out = p;

	for (; *p; p++) {
		if (*p == '\\' && p[1]) {
			p++;
			*out++ = *p == 't' ? '\t' : *p == 'n' ? '\n' : *p;
		} else {
			*out++ = *p;
		}
	}
	*out = '\0';
}

static bool next_line(struct table *t)
{
	ssize_t len = getline(&t->line, &t->cap, t->f);
	char *rest = t->line, *field;

	if (len <= 0)
		return false;
	t->line[strcspn(t->line, "\n")] = '\0';
	t->number++;
	for (t->n = 0; (field = strsep(&rest, "\t")) && t->n < MAX_FIELDS;) {
		unescape(field);
		t->fields[t->n++] = field;
	}
	return true;
}

static void open_table(struct table *t)
{
	const char *named = getenv("FUSEE_RELABEL_TABLE");
	char path[4096];

	if (named) {
		snprintf(path, sizeof(path), "%s", named);
	} else { /* beside build/tests/test_relabel */
		ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 64);

		CHECK(len > 0);
		path[len] = '\0';
		strcpy(strrchr(path, '/'), "/../../tests/data/relabel.txt");
	}
	*t = (struct table){.f = fopen(path, "r")};
	if (!t->f)
		test_fail(__FILE__, __LINE__, "%s: %s", path, strerror(errno));
}

static void close_table(struct table *t)
{
	free(t->line);
	fclose(t->f);
}

/* A rule from the fields "rule", action, separator, regex, modulus, target, replacement, sources.
 */
static void add_rule(struct relabel_rules *rules, const struct table *t)
{
	struct fusee_str sources[MAX_FIELDS];
	struct relabel_rule_text text = {.action = t->fields[1],
					 .separator = t->fields[2],
					 .regex = t->fields[3],
					 .modulus = strtoll(t->fields[4], NULL, 10),
					 .target_label = t->fields[5],
					 .replacement = t->fields[6],
					 .source_labels = {sources, t->n - 7, sizeof(*sources)}};
	char *wrong;

	CHECK(t->n >= 7);
	for (uint32_t i = 7; i < t->n; i++)
		sources[i - 7] = fusee_text(t->fields[i]);
	if (relabel_rules_add(rules, &text, &wrong))
		test_fail(__FILE__, __LINE__, "line %u: %s", t->number, wrong);
}

/* Labels "name=value" from field 1 on. */
static uint32_t read_labels(const struct table *t, struct fusee_label *labels)
{
	for (uint32_t i = 1; i < t->n; i++) {
		char *equals = strchr(t->fields[i], '=');

		CHECK(equals);
		labels[i - 1] = (struct fusee_label){
			.key = {t->fields[i], (uint64_t)(equals - t->fields[i])},
			.str = fusee_text(equals + 1)};
	}
	return t->n - 1;
}

static void compare(const struct relabeled *is, const struct table *t)
{
	struct fusee_label labels[MAX_FIELDS];
	bool kept = !strcmp(t->fields[0], "kept");
	uint32_t n = read_labels(t, labels);

	if (kept != (is->fate == RELABEL_KEPT))
		test_fail(__FILE__, __LINE__, "line %u: expected %s, is %s by rule %u", t->number,
			  t->fields[0], is->fate == RELABEL_KEPT ? "kept" : relabel_reason(is),
			  is->rule + 1);
	if (n != is->n)
		test_fail(__FILE__, __LINE__, "line %u: %u labels expected, %u", t->number, n,
			  is->n);
	for (uint32_t i = 0; i < n; i++)
		if (!str_equal(labels[i].key, is->labels[i].key) ||
		    !str_equal(labels[i].str, is->labels[i].str))
			test_fail(__FILE__, __LINE__, "line %u: expected %s, is %s=%s", t->number,
				  t->fields[i + 1], is->labels[i].key.p, is->labels[i].str.p);
}

/* The case whose first rules, or labels, are in t. */
static void check_labels(struct table *t, struct relabel_rules *rules)
{
	const struct relabel_rules *lists[] = {NULL, rules};
	struct fusee_label labels[MAX_FIELDS];
	struct relabeled *is;
	uint32_t n = read_labels(t, labels);

	CHECK_INT(relabel_apply(lists, 2, labels, n, &is), 0);
	CHECK(next_line(t));
	if (is->fate == RELABEL_LIMIT)
		t->limited++;
	else
		compare(is, t);
	free(is);
}

static void check_match(struct table *t, bool matches)
{
	struct fusee_str subject = fusee_text(t->fields[2]);
	struct buf out = {0};
	struct regex_match m;
	struct regex *re;
	char *wrong;
	int is;

	if (regex_new(&re, t->fields[1], &wrong))
		test_fail(__FILE__, __LINE__, "line %u: %s", t->number, wrong);
	is = regex_match(re, subject, &m);
	t->limited += is == -EAGAIN;
	if (is != -EAGAIN && is != matches)
		test_fail(__FILE__, __LINE__, "line %u: expected %d, is %d", t->number, matches,
			  is);
	if (is == 1) {
		regex_expand(re, t->fields[3], subject, &m, &out);
		buf_add(&out, "", 1);
		if (strcmp(out.p, t->fields[4]))
			test_fail(__FILE__, __LINE__, "line %u: expected '%s', is '%s'", t->number,
				  t->fields[4], out.p);
	}
	buf_fini(&out);
	regex_free(re);
}

TEST_FOR(as_prometheus, 600)
{
	struct relabel_rules *rules = relabel_rules_new("table:1");
	struct table t;
	uint32_t cases = 0;

	open_table(&t);
	while (next_line(&t)) {
		const char *what = t.fields[0];
		struct regex *re;
		char *wrong;

		if (!strcmp(what, "rule")) {
			add_rule(rules, &t);
		} else if (!strcmp(what, "labels")) {
			check_labels(&t, rules);
			relabel_rules_free(rules);
			rules = relabel_rules_new("table:1");
			cases++;
		} else if (!strcmp(what, "refused")) {
			if (regex_new(&re, t.fields[1], &wrong) != -EINVAL)
				test_fail(__FILE__, __LINE__, "line %u: '%s' is accepted", t.number,
					  t.fields[1]);
			free(wrong);
		} else {
			check_match(&t, !strcmp(what, "match"));
			cases++;
		}
	}
	printf("# %u cases, %u beyond the limit\n", cases, t.limited);
	CHECK(cases > 100);
	CHECK(t.limited <= cases / 1000);
	relabel_rules_free(rules);
	close_table(&t);
}

/* ---- single rules ---- */

static struct relabel_rules *rules_of(struct relabel_rule_text text)
{
	struct relabel_rules *rules = relabel_rules_new("fusee.lua:3");
	char *wrong;

	text.separator = text.separator ? text.separator : ";";
	text.regex = text.regex ? text.regex : "(.*)";
	text.target_label = text.target_label ? text.target_label : "";
	text.replacement = text.replacement ? text.replacement : "$1";
	if (relabel_rules_add(rules, &text, &wrong))
		test_fail(__FILE__, __LINE__, "%s", wrong);
	return rules;
}

/* A joined value that no regex can match would seem to be beyond the limit of its steps. */
TEST(texts_that_are_not_utf8)
{
	struct relabel_rules *rules = relabel_rules_new("fusee.lua:3");
	struct relabel_rule_text rule = {.action = "replace",
					 .separator = "\xff",
					 .regex = "(.*)",
					 .target_label = "a",
					 .replacement = "$1"};
	char *text = NULL;

	CHECK_INT(relabel_rules_add(rules, &rule, &text), -EINVAL);
	CHECK_STR(text, "separator is not UTF-8, as all values of labels are");
	free(text);
	rule.separator = ";";
	rule.replacement = "\xc3";
	CHECK_INT(relabel_rules_add(rules, &rule, &text), -EINVAL);
	CHECK_STR(text, "replacement is not UTF-8, as all values of labels are");
	free(text);
	rule.replacement = "\xc3\xa4";
	CHECK_INT(relabel_rules_add(rules, &rule, &text), 0);
	relabel_rules_free(rules);
}

/* A step that goes back for each character of the text: 2^28 ways to divide 28 letters. */
TEST(limit_of_a_match)
{
	static struct fusee_str source = {"a", 1};
	struct relabel_rules *rules = rules_of(
		(struct relabel_rule_text){.action = "keep",
					   .source_labels = {&source, 1, sizeof(source)},
					   .regex = "(x+x+)+[yz]"});
	const struct relabel_rules *lists[] = {rules};
	struct fusee_label label = {.key = {"a", 1}, .str = {"xxxxxxxxxxxxxxxxxxxxxxxxxxxx", 28}};
	struct relabeled *r;
	char name[64];

	CHECK_INT(relabel_apply(lists, 1, &label, 1, &r), 0);
	CHECK_INT(r->fate, RELABEL_LIMIT);
	CHECK_STR(relabel_reason(r), "match limit");
	relabel_rule_name(r, name, sizeof(name));
	CHECK_STR(name, "fusee.lua:3, rule 1");
	CHECK_INT(r->n, 0);
	free(r);
	relabel_rules_free(rules);
}

TEST(most_labels)
{
	struct relabel_rules *rules = rules_of(
		(struct relabel_rule_text){.action = "labelmap", .replacement = "more_$1"});
	const struct relabel_rules *lists[] = {rules};
	struct fusee_label labels[RELABEL_LABELS];
	char names[RELABEL_LABELS][16];
	struct relabeled *r;

	for (uint32_t i = 0; i < RELABEL_LABELS; i++) {
		snprintf(names[i], sizeof(names[i]), "l%02u", i);
		labels[i] = (struct fusee_label){.key = fusee_text(names[i]), .str = {"v", 1}};
	}
	CHECK_INT(relabel_apply(lists, 1, labels, 40, &r), 0);
	CHECK_INT(r->n, RELABEL_LABELS);
	CHECK_INT(r->lost, 16);
	for (uint32_t i = 1; i < r->n; i++)
		CHECK(strcmp(r->labels[i - 1].key.p, r->labels[i].key.p) < 0);
	free(r);
	relabel_rules_free(rules);
}

TEST(values_are_truncated)
{
	static struct fusee_str sources[2] = {{"a", 1}, {"a", 1}};
	struct relabel_rules *rules = rules_of(
		(struct relabel_rule_text){.action = "replace",
					   .source_labels = {sources, 2, sizeof(*sources)},
					   .separator = "\303\274",
					   .target_label = "b"});
	const struct relabel_rules *lists[] = {rules};
	char text[256];
	struct fusee_label label = {.key = {"a", 1}, .str = {text, 255}};
	struct relabeled *r;

	memset(text, 'x', sizeof(text));
	CHECK_INT(relabel_apply(lists, 1, &label, 1, &r), 0);
	CHECK_INT(r->n, 2);
	CHECK_INT(r->labels[1].str.len, 255); /* the character of two bytes does not fit */
	free(r);
	relabel_rules_free(rules);
}

/* In patterns of a script \d is as it is here: "\\d" in C. */
TEST(wrong_patterns)
{
	static const struct {
		const char *pattern, *text;
	} all[] = {
		{"a(b", "regex 'a(b' is wrong at character 4: missing ')'"},
		{"\303\274)", "regex '\303\274)' is wrong at character 2: an unexpected ')'"},
		{"[a", "regex '[a' is wrong at character 1: missing ']'"},
		{"[b-a]",
		 "regex '[b-a]' is wrong at character 2: a range from a later character to an "
		 "earlier character"},
		{"a**", "regex 'a**' is wrong at character 3: a repetition of a repetition"},
		{"a|*", "regex 'a|*' is wrong at character 3: there is nothing to repeat"},
		{"a{1001}",
		 "regex 'a{1001}' is wrong at character 2: a repetition must be {n,m} with n "
		 "<= m <= 1000"},
		{"(a)\\1", "regex '(a)\\1' is wrong at character 4: references to groups are not "
			   "supported"},
		{"x(?=a)", "regex 'x(?=a)' is wrong at character 2: unknown form of a group"},
		{"\\h", "regex '\\h' is wrong at character 1: unknown escape sequence"},
		{"a\\", "regex 'a\\' is wrong at character 2: a backslash at the end"},
		{"ab\\p{Foo}",
		 "regex 'ab\\p{Foo}' is wrong at character 3: unknown property after \\P or "
		 "\\p"},
		{"[[:foo:]]",
		 "regex '[[:foo:]]' is wrong at character 2: unknown class of characters"},
		{"a\377", NULL},
		{"(?P<1", "regex '(?P<1' is wrong at character 1: a group's name must be "
			  "<letters_and_digits>"},
		{"((a{1000}){1000}){1000}", NULL},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		struct regex *re;
		char *text;

		CHECK_INT(regex_new(&re, all[i].pattern, &text), -EINVAL);
		if (all[i].text)
			CHECK_STR(text, all[i].text);
		free(text);
	}
}

TEST(deep_groups)
{
	char pattern[1024];
	struct regex *re;
	char *text;

	for (int depth = 50; depth <= 200; depth += 150) {
		memset(pattern, '\0', sizeof(pattern));
		for (int i = 0; i < depth; i++)
			strcat(pattern, "(?:");
		strcat(pattern, "a");
		for (int i = 0; i < depth; i++)
			strcat(pattern, ")");
		if (depth > 100) {
			CHECK_INT(regex_new(&re, pattern, &text), -EINVAL);
			free(text);
			continue;
		}
		CHECK_INT(regex_new(&re, pattern, &text), 0);
		CHECK_INT(regex_match(re, fusee_text("a"), NULL), 1);
		regex_free(re);
	}
}

/* ---- results that are kept ---- */

TEST(relabeler)
{
	struct relabel_rules *rules = rules_of(
		(struct relabel_rule_text){.action = "labeldrop", .regex = "pod"});
	struct relabel_rules *drops = rules_of(
		(struct relabel_rule_text){.action = "drop", .regex = ".*"});
	struct fusee_label a[] = {{.key = {"app", 3}, .str = {"x", 1}},
				  {.key = {"pod", 3}, .str = {"1", 1}}};
	struct fusee_label b[] = {a[0], {.key = {"pod", 3}, .str = {"2", 1}}};
	struct relabeler *r = relabeler_new();
	const struct relabeled *first, *second;
	uint32_t one, two;

	relabeler_set_rules(r, rules, NULL);
	first = relabeler_get(r, a, 2, &one);
	second = relabeler_get(r, b, 2, &two);
	CHECK(first && first == second && one == two && one);
	CHECK_INT(first->n, 1);
	CHECK(relabeler_get(r, a, 1, &two) == first && one == two);
	for (int i = 0; i < 4; i++) { /* a is requested, the others are forgotten */
		relabeler_tidy(r);
		CHECK(relabeler_get(r, a, 2, &two) == first && one == two);
	}
	relabeler_tidy(r);
	relabeler_tidy(r);
	relabeler_tidy(r);
	CHECK(relabeler_get(r, a, 2, &two) && one != two); /* it was forgotten, and made anew */
	relabeler_set_rules(r, rules, drops);
	CHECK_INT(relabeler_get(r, a, 2, &two)->fate, RELABEL_DROPPED);
	CHECK_STR(relabel_reason(relabeler_get(r, a, 2, &two)), "drop");
	relabeler_free(r);
	relabel_rules_free(rules);
	relabel_rules_free(drops);
}
