/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/discovery/scrape
/* discovery scrape: addresses, options and pauses. tests/run/scrape has servers. */
#include "test.h"

#include "lib/discovery.h"
#include "scrape.h"

extern const struct fusee_plugin fusee_plugin;

static char said[300];

static int fail(struct fusee_instance *in, int err, const char *text)
{
	(void)in;
	snprintf(said, sizeof(said), "%s", text);
	return err;
}

static const struct fusee_host host = {.size = sizeof(host), .fail = fail};

static int make(struct address *a, const char *target, const char *path, struct fusee_table params)
{
	const struct scrapes s = {
		.self = {NULL, &host}, .seconds = 7 * FUSEE_SECOND, .params = params};

	*a = (struct address){0};
	*said = '\0';
	return address_make(a, &s, target, path);
}

static void is(const char *target, const char *path, const char *base, const char *rest,
	       const char *kind, uint64_t seconds)
{
	char text[300];
	struct address a;

	CHECK_INT(make(&a, target, path, (struct fusee_table){0}), 0);
	CHECK_STR(a.base, base);
	snprintf(text, sizeof(text), "%s?%s", a.path, a.query);
	CHECK_STR(text, rest);
	CHECK_STR(a.kind, kind);
	CHECK_INT(a.lasts_ns, seconds * FUSEE_SECOND);
	address_free(&a);
}

TEST(addresses)
{
	is("web:6060", "/debug/pprof/heap", "http://web:6060", "/debug/pprof/heap?", "alloc", 0);
	is("web:6060", "/debug/pprof/profile", "http://web:6060", "/debug/pprof/profile?seconds=7",
	   "cpu", 7);
	is("https://web/x", "/debug/pprof/profile?a=b&seconds=9", "https://web/x",
	   "/debug/pprof/profile?a=b&seconds=9", "cpu", 9);
	is("[::1]:80", "/debug/pprof/profile/?a=b", "http://[::1]:80",
	   "/debug/pprof/profile?a=b&seconds=7", "cpu", 7);
	is("web:1", "/debug/pprof/mutex?seconds=3", "http://web:1", "/debug/pprof/mutex?seconds=3",
	   "mutex", 3);
	is("web:1", "/own/name", "http://web:1", "/own/name?", "name", 0);
}

TEST(parameters_are_encoded)
{
	const struct fusee_label params[] = {{.key = {"a b", 3}, .str = {"1&2=\xc3\xbc", 6}},
					     {.key = {"seconds", 7}, .str = {"4", 1}}};
	struct address a;

	CHECK_INT(make(&a, "web:1", "/x/profile?y=z",
		       (struct fusee_table){params, 2, sizeof(params[0])}),
		  0);
	CHECK_STR(a.query, "y=z&a%20b=1%262%3D%C3%BC&seconds=4");
	CHECK_STR(a.instance, "web:1");
	CHECK_STR(a.profile, "profile");
	CHECK_INT(a.lasts_ns, 4 * FUSEE_SECOND);
	address_free(&a);
}

static void refuses(const char *target, const char *path, const char *sentence)
{
	struct address a;

	CHECK_INT(make(&a, target, path, (struct fusee_table){0}), -EINVAL);
	CHECK_STR(said, sentence);
	address_free(&a);
}

TEST(wrong_addresses)
{
	/* and what a sentence shows of it: no password, no token */
	static const char *const targets[][2] = {
		{"", ""},
		{"ftp://x", "ftp://x"},
		{"user:secret@web:1", "***@web:1"},
		{"https://secret@web:1/x", "https://***@web:1/x"},
		{"http://user:sec?ret@web:1", "http://***"},
		{"web:1?token=secret", "web:1?***"},
		{"web:1/x?token=a@secret", "***"},
		{"web:1#secret", "web:1#***"},
		{"web:1/\xe2\x80\xae", "web:1/\xe2\x80\xae"},
	};
	static const char no_target[] = " is not HOST:PORT, or http:// or https:// with a host";
	char text[200];

	for (size_t i = 0; i < sizeof(targets) / sizeof(*targets); i++) {
		snprintf(text, sizeof(text), "option 'targets': '%s'%s", targets[i][1], no_target);
		refuses(targets[i][0], "/x", text);
	}
	refuses("web:1", "x", "option 'paths': 'x' is not /a/path or /a/path?query");
	refuses("web:1", "/a b", "option 'paths': '/a b' is not /a/path or /a/path?query");
	refuses("web:1", "/x\r\nHost: y",
		"option 'paths': '/x\r\nHost: y' is not /a/path or /a/path?query");
	refuses("web:1", "/", "option 'paths': '/' names no profile");
	refuses("web:1", "/?token=secret", "option 'paths': '/?***' names no profile");
	refuses("web:1", "x?token=secret",
		"option 'paths': 'x?***' is not /a/path or /a/path?query");
	refuses("web:1", "/p?seconds=99999",
		"the parameter 'seconds' of '/p' must be a number up to 3600");
	refuses("web:1", "/p?seconds=x",
		"the parameter 'seconds' of '/p' must be a number up to 3600");
}

TEST(pauses)
{
	const uint64_t minute = FUSEE_MINUTE;

	CHECK_INT(scrape_pause(minute, 0, 0), minute);
	CHECK_INT(scrape_pause(minute, 1, 0), minute);
	CHECK_INT(scrape_pause(minute, 2, 0), 2 * minute);
	CHECK_INT(scrape_pause(minute, 4, 0), 8 * minute);
	CHECK_INT(scrape_pause(minute, 5, 0), 10 * minute);
	CHECK_INT(scrape_pause(minute, UINT32_MAX, 0), 10 * minute);
	CHECK_INT(scrape_pause(24 * FUSEE_HOUR, 9, 0), 24 * FUSEE_HOUR);
	CHECK_INT(scrape_pause(minute, 0, 3 * minute), 3 * minute);
}

TEST(what_an_instance_requires)
{
	static const struct {
		const char *job, *targets, *labels, *says;
	} all[] = {
		{"", "web:1", "", "option 'job' is empty"},
		{"a", "", "", "targets times paths must be 1 to 256, not 0"},
		{"a", "web:1", "a-b=c", "option 'labels': 'a-b' is not a label's name"},
		{"a\nb", "web:1", "",
		 "option 'job': a text is not printable, or longer than 4096 bytes"},
		{"a", "web:1", "team=b,in=\xe2\x80\xae",
		 "option 'labels': a text is not printable, or longer than 4096 bytes"},
		{"a", "web:1", "team=\xff",
		 "option 'labels': a text is not printable, or longer than 4096 bytes"},
		{"a", "web:1,ftp://x", "",
		 "option 'targets': 'ftp://x' is not HOST:PORT, or http:// or https:// with a "
		 "host"},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct fake *f = fake_new(&fusee_plugin, "job", all[i].job, "targets",
					  all[i].targets, "labels", all[i].labels, NULL);

		CHECK_INT(fake_init(f), -EINVAL);
		CHECK_STR(f->error, all[i].says);
		fake_free(f);
	}
}

TEST(texts_of_labels)
{
	static char text[SCRAPE_TEXT + 2];

	CHECK(scrape_is_text("") && scrape_is_text("a b") && scrape_is_text("\xc3\xbc"));
	CHECK(!scrape_is_text("\xc2\x85") && !scrape_is_text("\x7f"));
	memset(text, 'x', SCRAPE_TEXT);
	CHECK(scrape_is_text(text));
	text[SCRAPE_TEXT] = 'x';
	CHECK(!scrape_is_text(text));
}
