/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/sinks/parquet
/* Objects of sink.parquet that are read back, from tests/run/lib/s3_server.py: run from the
 * source's root. */
#include "lib/fakehost.h"
#include "lib/begun.h"
#include "lib/served.h"
#include "lib/served_s3.h"

static const struct fusee_sink_ops *ops_of(const struct fake *f)
{
	return f->plugin->ops;
}

/* Makes an object of these bytes, "0123..". */
static void object(const char *key, uint32_t bytes)
{
	CHECK_INT(count(text("f='objects/%s'; mkdir -p \"${f%%/*}\" && seq 100000 | tr -d '\\n' | "
			     "head -c %u >\"$f\" && echo 0",
			     key, bytes)),
		  0);
}

/* ---- ranges ---- */

static int64_t get(struct fake *f, const char *key, uint64_t at, char *to, uint64_t n,
		   uint64_t *all)
{
	memset(to, '?', n + 1);
	*all = 77;
	return ops_of(f)->read(f->ctx, key, at, to, n, all);
}

TEST(ranges)
{
	static char big[200001], big2[200001];
	struct fake *f;
	char to[64];
	uint64_t all;

	begin();
	object("p/a b/x=1/+&%25", 30);
	object("p/big", 200000);
	object("p/empty", 0);
	f = sink_of("s3://profiles/p/a b");
	CHECK_INT(get(f, "x=1/+&%25", 0, to, 5, &all), 5);
	CHECK(!memcmp(to, "12345?", 6));
	CHECK_INT(all, 30);
	CHECK_INT(get(f, "x=1/+&%25", 8, to, 4, &all), 4);
	CHECK(!memcmp(to, "9101?", 5));
	CHECK_INT(get(f, "x=1/+&%25", UINT64_MAX, to, 3, &all), 3);
	CHECK(!memcmp(to, "192?", 4) && all == 30);
	CHECK_INT(get(f, "x=1/+&%25", UINT64_MAX, to, 50, &all), 30);
	/* it has become shorter */
	CHECK_INT(get(f, "x=1/+&%25", 28, to, 4, &all), -ESTALE);
	CHECK_INT(get(f, "x=1/+&%25", 30, to, 4, &all), -ESTALE);
	CHECK_INT(get(f, "none", 0, to, 4, &all), -ENOENT);
	fake_free(f);
	f = sink_of("s3://profiles/p");
	CHECK_INT(get(f, "big", 0, big, 200000, &all), 200000);
	CHECK_INT(get(f, "big", 100000, big2, 100000, &all), 100000);
	CHECK(!memcmp(big + 100000, big2, 100000));
	CHECK_INT(get(f, "empty", UINT64_MAX, to, 4, &all), 0);
	CHECK_INT(all, 0);
	fake_free(f);
}

TEST(answers_without_a_range)
{
	struct fake *f;
	char to[64];
	uint64_t all;

	begin();
	object("a", 10);
	f = sink_of("s3://profiles");
	put("faults", "get 1 0 all\n");
	CHECK_INT(get(f, "a", UINT64_MAX, to, 50, &all), 10);
	CHECK_INT(all, 10);
	/* more than there is room for */
	put("faults", "get 1 1 all\n");
	CHECK_INT(get(f, "a", UINT64_MAX, to, 4, &all), -EBADMSG);
	CHECK_STR(f->error, text("'%s' does not answer ranges of objects ('a')", endpoint));
	CHECK(to[4] == '?');
	put("faults", "get 1 2 all\n");
	CHECK_INT(get(f, "a", 2, to, 20, &all), -EBADMSG);
	CHECK_STR(f->error, text("'%s' answered another range of 'a'", endpoint));
	fake_free(f);
}

/* ---- lists ---- */

struct names {
	char text[4096];
	int end;
};

static int take(void *arg, struct fusee_str name)
{
	struct names *n = arg;
	size_t len = strlen(n->text);

	snprintf(n->text + len, sizeof(n->text) - len, "%.*s\n", (int)name.len, name.p);
	return n->end;
}

static int list(struct fake *f, const char *prefix, uint32_t flags, struct names *n)
{
	const struct fusee_listing l = {sizeof(l), flags, prefix, take, n};

	*n->text = '\0';
	return ops_of(f)->list(f->ctx, &l);
}

TEST(lists)
{
	static const char all[] = "t/a/1\nt/a/2\nt/b/<&>\"' +%25\nt/b/\xc3\xbc\nt/c\n";
	struct names n = {"", 0};
	struct fake *f;

	begin();
	object("p q/t/a/1", 1);
	object("p q/t/a/2", 1);
	object("p q/t/c", 1);
	object("p q/other", 1);
	object("p q2/t/c", 1);
	object("p q/t/b/\xc3\xbc", 1);
	put("objects/p q/t/b/<&>\"' +%25", "1");
	f = sink_of("s3://profiles/p q");
	CHECK_INT(list(f, "t/", 0, &n), 0);
	CHECK_STR(n.text, all);
	CHECK_INT(list(f, "t/", FUSEE_LISTING_FOLDERS, &n), 0);
	CHECK_STR(n.text, "t/a/\nt/b/\n");
	CHECK_INT(list(f, "none/", 0, &n), 0);
	CHECK_STR(n.text, "");
	put("page", "1");
	CHECK_INT(list(f, "t/", 0, &n), 0);
	CHECK_STR(n.text, all);
	n.end = -EFBIG;
	CHECK_INT(list(f, "t/", 0, &n), -EFBIG);
	CHECK_STR(n.text, "t/a/1\n");
	fake_free(f);
}

TEST(there_is_no_bucket)
{
	struct names n = {"", 0};
	struct fake *f;
	char to[8];
	uint64_t all;

	scratch();
	f = begun(fake_new(&fusee_plugin, "dir", text("%s/store", dir), NULL));
	CHECK_INT(list(f, "t/", 0, &n), -EINVAL);
	CHECK_INT(get(f, "a", 0, to, 4, &all), -EINVAL);
	fake_free(f);
}
