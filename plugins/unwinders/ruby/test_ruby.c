/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/unwinders/ruby
#include "test.h"

#include <stddef.h>

#include <fusee/unwinder.bpf.h>

#include "functions.h"
#include "versions.h"

/* ---- what was emitted ---- */

static struct ruby_function function(const char *label, const char *path)
{
	struct ruby_function f = {.first_line = 7};

	f.label_bytes = (unsigned short)strlen(label);
	f.path_bytes = (unsigned short)strlen(path);
	memcpy(f.label, label, f.label_bytes);
	memcpy(f.path, path, f.path_bytes);
	return f;
}

static uint64_t length(const struct ruby_function *f)
{
	return offsetof(struct ruby_function, path) + f->path_bytes;
}

TEST(functions_and_lines)
{
	void *processes = NULL;
	struct ruby_function f = function("block in top", "/a.rb");
	struct ruby_place p = {.function = 42, .line = 11};
	const struct ruby_named *named;
	uint32_t line;

	CHECK(ruby_functions_add(&processes, 1, RUBY_FUNCTION, 42, &f, length(&f)) > 0);
	CHECK_INT(ruby_functions_add(&processes, 1, RUBY_FUNCTION, 42, &f, length(&f)),
		  0); /* again */
	CHECK(ruby_functions_add(&processes, 1, RUBY_PLACE, fusee_mix(42, 3), &p, sizeof(p)) > 0);
	named = ruby_functions_find(&processes, 1, 42, 3, &line);
	CHECK(named && !strcmp(named->label, "block in top") && !strcmp(named->path, "/a.rb"));
	CHECK(named && named->first_line == 7);
	CHECK_INT(line, 11);
	CHECK(ruby_functions_find(&processes, 1, 42, 4, &line));
	CHECK_INT(line, 0);
	CHECK(!ruby_functions_find(&processes, 1, 43, 3, &line));
	CHECK(!ruby_functions_find(&processes, 2, 42, 3, &line));
	ruby_functions_remove(&processes, 1);
	CHECK(!ruby_functions_find(&processes, 1, 42, 3, &line));
	ruby_functions_remove(&processes, 1);
	ruby_functions_free(&processes);
}

/* The label of a function whose emission has these texts. */
static const char *label_with(const char *label, const char *class, const char *base, int singleton)
{
	static char text[512];
	void *processes = NULL;
	struct ruby_function f = function(label, "/a.rb");
	uint32_t line;

	f.class_bytes = (unsigned short)strlen(class);
	memcpy(f.class_name, class, f.class_bytes);
	f.base_bytes = (unsigned short)strlen(base);
	f.is_singleton = (unsigned short)singleton;
	CHECK(ruby_functions_add(&processes, 1, RUBY_FUNCTION, 42, &f, length(&f)) > 0);
	snprintf(text, sizeof(text), "%s", ruby_functions_find(&processes, 1, 42, 3, &line)->label);
	ruby_functions_free(&processes);
	return text;
}

TEST(labels_have_their_class)
{
	CHECK_STR(label_with("each", "Array", "each", 0), "Array#each");
	CHECK_STR(label_with("block in run", "A::B", "run", 0), "block in A::B#run");
	CHECK_STR(label_with("rescue in top", "Tool", "top", 1), "rescue in Tool.top");
	CHECK_STR(label_with("<main>", "Object", "", 0), "<main>");
	CHECK_STR(label_with("nameless", "", "nameless", 0), "nameless");
	CHECK_STR(label_with("f", "Object", "longer than the label", 0), "f");
}

TEST(damaged_emissions)
{
	void *processes = NULL;
	struct ruby_function f = function("f", "/a.rb");

	CHECK_INT(ruby_functions_add(&processes, 1, 3, 42, &f, length(&f)), -EBADMSG);
	CHECK_INT(ruby_functions_add(&processes, 1, RUBY_FUNCTION, 42, &f, 8), -EBADMSG);
	CHECK_INT(ruby_functions_add(&processes, 1, RUBY_FUNCTION, 42, &f, length(&f) - 1),
		  -EBADMSG);
	CHECK_INT(ruby_functions_add(&processes, 1, RUBY_PLACE, 42, &f, 15), -EBADMSG);
	f.label_bytes = RUBY_LABEL_BYTES + 1;
	CHECK_INT(ruby_functions_add(&processes, 1, RUBY_FUNCTION, 42, &f, length(&f)), -EBADMSG);
	ruby_functions_free(&processes);
}

TEST(one_process_has_a_bound)
{
	void *processes = NULL;
	struct ruby_place p = {.line = 1};
	uint64_t n = 0;

	while (n < 64u << 20 && ruby_functions_add(&processes, 1, RUBY_PLACE, n, &p, sizeof(p)) > 0)
		n++;
	CHECK_INT(ruby_functions_add(&processes, 1, RUBY_PLACE, n, &p, sizeof(p)), -ENOSPC);
	CHECK(ruby_functions_add(&processes, 2, RUBY_PLACE, n, &p, sizeof(p)) > 0);
	ruby_functions_free(&processes);
}

TEST(versions)
{
	uint32_t words[RUBY_WORDS];

	CHECK_INT(ruby_version_words("2.7.4", words), 0);
	CHECK_INT(words[RUBY_BY], RUBY_BY_KEY);
	CHECK_INT(ruby_version_words("3.3.8", words), 0);
	CHECK_INT(words[RUBY_STRING_EMBED], 24);
	CHECK_INT(ruby_version_words("3.4.0", words), -ENOTSUP);
	CHECK_INT(ruby_version_words("3.10.0", words), -ENOTSUP);
	CHECK_INT(ruby_version_words("2.6.10", words), -ENOTSUP);
	CHECK_INT(ruby_version_words("", words), -ENOTSUP);
}
