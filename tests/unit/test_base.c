// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/base
/* core/base: buffers, dictionaries, the log, characters, numbers. */

#include "base/arena.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/credentials.h"
#include "base/dict.h"
#include "base/hashmap.h"
#include "base/log.h"
#include "base/text.h"
#include "base/utf8.h"
#include "lib/pause.h"
#include "test.h"

static bool equal(const struct buf *b, const char *text)
{
	return b->len == strlen(text) && (!b->len || !memcmp(b->p, text, b->len));
}

/* ---- buf ---- */

TEST(buf_appends)
{
	struct buf b = {0};
	char *at;

	CHECK_INT(buf_str(&b, ""), 0);
	CHECK_INT(b.len, 0);
	CHECK_INT(buf_str(&b, "one"), 0);
	CHECK_INT(buf_add(&b, "\0two", 4), 0);
	CHECK_INT(buf_printf(&b, " %d %s", 3, "four"), 0);
	CHECK_INT(b.len, 14);
	CHECK(!memcmp(b.p, "one\0two 3 four", 14));
	at = buf_grow(&b, 100000);
	CHECK(at == b.p + 14 && b.len == 100014 && b.cap >= b.len);
	memset(at, 'x', 100000);
	CHECK(!memcmp(b.p, "one\0two 3 four", 14));
	buf_reset(&b);
	CHECK(!b.len && b.cap >= 100014);
	for (int i = 0; i < 3000; i++)
		CHECK_INT(buf_printf(&b, "%d,", i), 0);
	CHECK_INT(b.len, 10 * 2 + 90 * 3 + 900 * 4 + 2000 * 5);
	CHECK(!memcmp(b.p, "0,1,2,", 6) && !memcmp(b.p + b.len - 5, "2999,", 5));
	buf_fini(&b);
	CHECK(!b.p && !b.len && !b.cap && !b.error);
	buf_fini(&b);
}

/* After a failure nothing is appended any more, and what was there is still there. */
TEST(buf_errors_stay)
{
	static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 2, SIZE_MAX / 2 + 2};
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct buf b = {0};

		CHECK_INT(buf_str(&b, "kept"), 0);
		CHECK(!buf_grow(&b, sizes[i]));
		CHECK_INT(b.error, -ENOMEM);
		CHECK_INT(buf_str(&b, "x"), -ENOMEM);
		CHECK_INT(buf_add(&b, "", 0), -ENOMEM);
		CHECK_INT(buf_printf(&b, "%d", 1), -ENOMEM);
		CHECK_INT(buf_read_fd(&b, fd, 100), -ENOMEM);
		CHECK(!buf_grow(&b, 1));
		CHECK(equal(&b, "kept"));
		buf_reset(&b);
		CHECK_INT(b.error, 0);
		CHECK_INT(buf_str(&b, "again"), 0);
		CHECK(equal(&b, "again"));
		buf_fini(&b);
	}
	close(fd);
}

static int file_of(size_t len)
{
	int fd = memfd_create("buf", MFD_CLOEXEC);

	CHECK(fd >= 0 && !ftruncate(fd, (off_t)len));
	return fd;
}

TEST(buf_reads_up_to_a_limit)
{
	static const size_t max[] = {0, 1, 65535, 65536, 65537, 200000};

	for (size_t i = 0; i < sizeof(max) / sizeof(max[0]); i++)
		for (int more = 0; more < 2; more++) {
			struct buf b = {0};
			int fd = file_of(max[i] + (size_t)more);

			CHECK_INT(buf_read_fd(&b, fd, max[i]), more ? -EFBIG : 0);
			if (!more)
				CHECK_INT(b.len, max[i]);
			CHECK_INT(b.error, 0);
			buf_fini(&b);
			close(fd);
		}
}

TEST(buf_reads_what_never_ends_and_what_cannot_be_read)
{
	struct buf b = {0};
	int fds[2], fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	CHECK_INT(buf_read_fd(&b, fd, 1 << 20), -EFBIG);
	CHECK(b.len <= (1 << 20) + 65536);
	close(fd);
	buf_reset(&b);
	CHECK_INT(buf_read_fd(&b, fd, 100), -EBADF);
	fd = open("/", O_RDONLY | O_CLOEXEC);
	CHECK_INT(buf_read_fd(&b, fd, 100), -EISDIR);
	close(fd);

	/* it appends; a pipe hands over in pieces */
	CHECK_INT(buf_str(&b, "in front"), 0);
	CHECK(!pipe(fds));
	if (!fork()) {
		for (int i = 0; i < 20; i++) {
			if (write(fds[1], "12345", 5) != 5)
				_exit(1);
			pause_us(1000, "so that the pipe has pieces");
		}
		_exit(0);
	}
	close(fds[1]);
	CHECK_INT(buf_read_fd(&b, fds[0], 108), 0);
	CHECK_INT(b.len, 108);
	CHECK(!memcmp(b.p, "in front1234512345", 18));
	buf_fini(&b);
}

TEST(buf_writes_all)
{
	struct buf b = {0}, back = {0};
	int fds[2], full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	CHECK(!pipe(fds));
	for (int i = 0; i < 100000; i++)
		CHECK_INT(buf_printf(&b, "%d ", i), 0);
	if (!fork()) {
		close(fds[0]);
		_exit(buf_write(&b, fds[1]) != 0);
	}
	close(fds[1]);
	CHECK_INT(buf_read_fd(&back, fds[0], 1 << 24), 0);
	CHECK(back.len == b.len && !memcmp(back.p, b.p, b.len));
	CHECK_INT(buf_write(&b, full), -ENOSPC);
	CHECK_INT(buf_write(&b, -1), -EBADF);
	buf_fini(&b);
	CHECK_INT(buf_write(&b, -1), 0); /* nothing to write */
	buf_fini(&back);
}

/* ---- arena ---- */

/* Arrays that grow in turn, each with bytes of its own, beside pieces that stay. */
TEST(an_arena_keeps_and_returns)
{
	enum { ARRAYS = 5, MOST = 300000 };
	size_t before = arena_all_bytes(), n[ARRAYS] = {0};
	unsigned char *array[ARRAYS] = {NULL};
	struct arena a = {0};
	uint64_t x = 1;

	for (int round = 0; round < 2000; round++) {
		uint32_t i, more;

		x = x * 6364136223846793005u + 1442695040888963407u;
		i = (uint32_t)(x >> 33) % ARRAYS;
		more = (uint32_t)(x >> 40) % 2000;
		if (n[i] + more > MOST)
			continue;
		array[i] = arena_grow(&a, array[i], n[i], n[i] + more);
		CHECK(array[i] && !((uintptr_t)array[i] % 8));
		for (size_t k = 0; k < n[i] + more; k++)
			if (array[i][k] != (k < n[i] ? i + 1 : 0))
				CHECK(!"kept, and zero behind it");
		memset(array[i], (int)i + 1, n[i] += more);
		memset(arena_add(&a, 100), 0xff, 100);
	}
	CHECK(n[0] + n[1] + n[2] + n[3] + n[4] > ARRAYS * MOST / 2);
	CHECK_INT(arena_all_bytes() - before, a.bytes);
	for (int i = 0; i < ARRAYS; i++)
		arena_drop(&a, array[i], n[i]);
	CHECK(a.bytes < 2u << 20);
	CHECK(!arena_add(&a, SIZE_MAX) && !arena_add(&a, SIZE_MAX / 2 + 1));
	arena_fini(&a);
	CHECK_INT(arena_all_bytes(), before);
	CHECK(!a.blocks && !a.bytes);
}

/* ---- dict ---- */

TEST(dict_small)
{
	struct dict d = {0};
	const void *empty, *a;

	CHECK_INT(dict_find(&d, "x", 1), DICT_NONE); /* {0} is fine */
	dict_fini(&d);
	CHECK_INT(dict_init(&d), 0);
	CHECK_INT(d.n, 1);
	CHECK_INT(dict_find(&d, "", 0), 0);
	CHECK_INT(dict_add(&d, "", 0), 0);
	CHECK_INT(dict_str(&d, NULL), 0);
	CHECK_INT(dict_str(&d, ""), 0);
	CHECK_INT(dict_str(&d, "a"), 1);
	/* bytes, not text */
	CHECK_INT(dict_add(&d, "a", 2), 2);
	CHECK_INT(dict_add(&d, "\0", 1), 3);
	CHECK_INT(dict_add(&d, "\0\0", 2), 4);
	CHECK_INT(dict_add(&d, "a\0b", 3), 5);
	CHECK_INT(dict_add(&d, "a\0c", 3), 6);
	CHECK_INT(dict_str(&d, "a"), 1);
	CHECK_INT(dict_add(&d, "\0\0", 2), 4);
	CHECK_INT(dict_find(&d, "a\0d", 3), DICT_NONE);
	CHECK_INT(d.n, 7);
	CHECK_INT(d.entries[5].len, 3);
	CHECK(!memcmp(d.entries[5].key, "a\0b", 3));
	empty = d.entries[0].key;
	a = d.entries[1].key;
	CHECK(empty && (uintptr_t)a % 8 == 0);
	dict_fini(&d);
	CHECK(!d.entries && !d.n);
}

/* Keys longer than a chunk of the arena, and of all sizes around it, between short keys. */
TEST(dict_long_keys)
{
	static const size_t sizes[] = {65527, 65528, 65529, 65535, 65536, 65537, 1 << 20, 5 << 20};
	const size_t n = sizeof(sizes) / sizeof(sizes[0]);
	char *key = malloc(5 << 20);
	struct dict d;

	CHECK(key);
	CHECK_INT(dict_init(&d), 0);
	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < n; i++) {
			memset(key, (int)i, sizes[i]);
			CHECK_INT(dict_add(&d, key, sizes[i]), 1 + 2 * i);
			CHECK_INT(dict_add(&d, &i, sizeof(i)), 2 + 2 * i);
		}
	CHECK_INT(d.n, 1 + 2 * n);
	for (size_t i = 0; i < n; i++) {
		const struct dict_entry *e = &d.entries[1 + 2 * i];

		memset(key, (int)i, sizes[i]);
		CHECK_INT(e->len, sizes[i]);
		CHECK(!memcmp(e->key, key, sizes[i]));
		key[sizes[i] - 1]++;
		CHECK_INT(dict_find(&d, key, sizes[i]), DICT_NONE);
		CHECK(!memcmp(d.entries[2 + 2 * i].key, &i, sizeof(i)));
	}
	dict_fini(&d);
	free(key);
}

/* As one of the heap: the same ids, and keys that never move. */
TEST(dict_in_an_arena)
{
	enum { KEYS = 200000 };
	struct arena a = {0};
	struct dict in, of;
	char key[64];

	CHECK_INT(dict_init_in(&in, &a), 0);
	CHECK_INT(dict_init(&of), 0);
	for (uint32_t i = 0; i < KEYS; i++) {
		int len = snprintf(key, sizeof(key), "%*u", 1 + (int)(i % 40), i * 7 % 150001);

		CHECK_INT(dict_add(&in, key, (size_t)len), dict_add(&of, key, (size_t)len));
	}
	CHECK_INT(in.n, of.n);
	for (uint32_t i = 0; i < of.n; i++) {
		const struct dict_entry *x = &in.entries[i], *y = &of.entries[i];

		CHECK(x->len == y->len && !memcmp(x->key, y->key, x->len));
		CHECK_INT(dict_find(&in, y->key, y->len), i);
		CHECK(!((uintptr_t)x->key % 8));
	}
	dict_fini(&of);
	dict_fini(&in);
	CHECK(a.bytes);
	arena_fini(&a);
}

/* Ids are dense and in order; keys never move, whatever comes after. */
TEST(dict_a_million)
{
	const uint32_t n = 1000000;
	const void **at = malloc(n * sizeof(*at));
	char key[64];
	struct dict d;

	CHECK(at);
	CHECK_INT(dict_init(&d), 0);
	for (uint32_t i = 0; i < n; i++) {
		int len = snprintf(key, sizeof(key), "%*u", 1 + (int)(i % 40), i);

		if (dict_add(&d, key, (size_t)len) != i + 1)
			CHECK(!"id in order");
		at[i] = d.entries[i + 1].key;
	}
	CHECK_INT(d.n, n + 1);
	for (uint32_t i = 0; i < n; i++) {
		size_t len = (size_t)snprintf(key, sizeof(key), "%*u", 1 + (int)(i % 40), i);

		if (d.entries[i + 1].key != at[i] || d.entries[i + 1].len != len ||
		    memcmp(at[i], key, len) || (uintptr_t)at[i] % 8)
			CHECK(!"key where it was");
		if (dict_find(&d, key, len) != i + 1 || dict_add(&d, key, len) != i + 1)
			CHECK(!"found again");
		key[0] = 'x';
		if (dict_find(&d, key, len) != DICT_NONE)
			CHECK(!"not found");
	}
	CHECK_INT(d.n, n + 1);
	CHECK(d.bytes >= 6 * (size_t)n && d.bytes <= 48 * (size_t)n);
	dict_fini(&d);
	free(at);
}

/* ---- credentials ---- */

static void check_hidden(void (*hide)(char *), const char *text, const char *expected)
{
	char s[256];

	snprintf(s, sizeof(s), "%s", text);
	hide(s);
	CHECK_STR(s, expected);
}

TEST(credentials_in_any_sentence)
{
	static const char *const all[][2] = {
		{"", ""},
		{"://", "://"},
		{"@", "@"},
		{"://@", "://@"},
		{"http://host/x?y#z", "http://host/x?y#z"},
		{"to ftp://u:secret@host/x, by https://vwx@w",
		 "to ftp://***@host/x, by https://***@w"},
		{"http://a@h http://ab@h http://abc@h", "http://*@h http://**@h http://***@h"},
		{"no '://' and a@b: user@1000.service", "no '://' and a@b: user@1000.service"},
		/* what a URL must encode, and what ends no quotation */
		{"'http://u:p/w?#@h:1/x' is wrong", "'http://***@h:1/x' is wrong"},
		{"'http://u:p w@h' is wrong", "'http://***@h' is wrong"},
		{"'http://u:it's@h', or a@b", "'http://***@h', or a@b"},
		{"'http://u:a@b@h'", "'http://***@h'"},
		{"isn't http://u:p@h", "isn't http://***@h"},
		{"'http://u:p@h without an end", "'http://***@h without an end"},
		{"'' http://u:p@h", "'' http://***@h"},
		{"x=http://u:p@h,y=http://v:q@w", "x=http://***@w"},
		{"a\tb\nhttp://u:p@h\n", "a\tb\nhttp://***@h\n"},
		{"'u:p@h' stays", "'u:p@h' stays"},
		/* a quote in the password that looks like an end */
		{"option 'url': 'ftp://me:it'.s3cr3t@host' is wrong",
		 "option 'url': 'ftp://***@host' is wrong"},
		{"'http://me:it' s3: cr3t@host': no", "'http://***@host': no"},
		{"'http://me:a'.b@c'.d@e',", "'http://***@e',"},
		{"'http://me:it'.s3cr3t@host", "'http://***@host"},
		{"'http://h/x' redirects to 'http://u:p@w'",
		 "'http://h/x' redirects to 'http://***@w'"},
		{"'http://h/x', by me@w", "'http://h/x', by me@w"},
		{"'http://u:p@h/x', by 'me@w'", "'http://***@h/x', by 'me@w'"},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		check_hidden(credentials_hide, all[i][0], all[i][1]);
}

TEST(credentials_in_options)
{
	static const char *const quoted[][2] = {
		{"option 'url': 'me:secret@host/x' is no address",
		 "option 'url': '***@host/x' is no address"},
		{"option 'url': 'http://h/x?key=1#y' is no address",
		 "option 'url': 'http://h/x?***' is no address"},
		{"'http://h?key=a@b&c' and 'http://u:p@h/x'", "'http://***' and 'http://***@h/x'"},
		{"a.lua:1: me@host is 'me@host', b:c@d is not quoted",
		 "a.lua:1: me@host is 'me@host', b:c@d is not quoted"},
	};
	static const char *const values[][2] = {
		{"", ""},
		{"ftp://u:a secret@host", "ftp://***@host"},
		{"u:secret@host:4040", "***@host:4040"},
		{"'u:x y'@host", "***@host"},
		{"me@example.org", "me@example.org"},
		{"http://h:1/x?key=1", "http://h:1/x?***"},
		{"http://h:1/x?", "http://h:1/x?"},
		{"http://u:p?q#@h/x", "http://***"},
		{"/a?b#c", "/a?b#c"},
	};
	static const char *const of[][3] = {
		{"dir", "/srv/prof/web:eu@1", "/srv/prof/web:eu@1"},
		{"dir", "web:eu@1", "web:eu@1"},
		{"dir", "/srv/a://b@c", "/srv/a://b@c"},
		{"service", "http://u:p@h?q", "http://***@h?*"},
		{"url", "u:secret@host", "***@host"},
		{"Proxy", "u:secret@host", "***@host"},
		{"targets", "http://h?key=1", "http://h?***"},
		{"bucket", "s3://name/a:b@c?d", "s3://name/a:b@c?d"},
		{"bucket", "s3://u:p/w@name/a", "s3://***@name/a"},
		{"bucket", "s3://u@name", "s3://*@name"},
	};
	char value[64];

	for (size_t i = 0; i < sizeof(quoted) / sizeof(*quoted); i++)
		check_hidden(credentials_hide_quoted, quoted[i][0], quoted[i][1]);
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		check_hidden(credentials_hide_value, values[i][0], values[i][1]);
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		snprintf(value, sizeof(value), "%s", of[i][1]);
		credentials_hide_option(of[i][0], value);
		CHECK_STR(value, of[i][2]);
	}
	CHECK(credentials_are_named("X-API-Key") && credentials_are_named("Authorization"));
	CHECK(!credentials_are_named("X-Scope-OrgID") && !credentials_are_named(""));
}

/* ---- log ---- */

static int calls;

static void count_call(void)
{
	calls++;
}

/* What f prints on stderr. */
static struct buf stderr_of(void (*f)(void))
{
	int was = dup(2), fd = memfd_create("log", MFD_CLOEXEC);
	struct buf b = {0};

	CHECK(was >= 0 && fd >= 0 && dup2(fd, 2) == 2);
	f();
	fflush(stderr);
	dup2(was, 2);
	close(was);
	CHECK_INT(lseek(fd, 0, SEEK_SET), 0);
	CHECK_INT(buf_read_fd(&b, fd, 1 << 20), 0);
	close(fd);
	return b;
}

static void each_level(void)
{
	log_error("an error: %s", "why");
	log_warning("%s", "a warning");
	log_info("info");
	log_debug("debug");
}

static void long_line(void)
{
	char line[10000];

	memset(line, 'x', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	log_info("%s", line);
}

static void check_log(void (*f)(void), const char *text)
{
	struct buf b = stderr_of(f);

	if (!equal(&b, text))
		fprintf(stderr, "# it printed: %.*s\n", (int)b.len, b.p);
	CHECK(equal(&b, text));
	buf_fini(&b);
}

static void a_password(void)
{
	log_error("cannot use '%s': it is not http", "ftp://me:secret@host/x?y");
}

TEST(log_hides_passwords)
{
	check_log(a_password, "fusee: cannot use 'ftp://***@host/x?y': it is not http\n");
}

TEST(log_levels)
{
	unsetenv("FUSEE_DEBUG");
	CHECK_INT(log_level(), LOG_INFO);
	check_log(each_level, "fusee: an error: why\nfusee: a warning\nfusee: info\n");
	log_set_level(LOG_ERROR);
	check_log(each_level, "fusee: an error: why\n");
	log_set_before(count_call);
	log_set_level(LOG_DEBUG);
	log_set_prefix("fusee worker: ");
	check_log(each_level, "fusee worker: an error: why\nfusee worker: a warning\n"
			      "fusee worker: info\nfusee worker: debug\n");
	CHECK_INT(calls, 4);
	log_set_level(LOG_WARNING); /* not before a line that is not printed */
	check_log(each_level, "fusee worker: an error: why\nfusee worker: a warning\n");
	CHECK_INT(calls, 6);
	log_set_before(NULL);
	check_log(each_level, "fusee worker: an error: why\nfusee worker: a warning\n");
	CHECK_INT(calls, 6);
}

TEST(log_debug_by_environment)
{
	setenv("FUSEE_DEBUG", "1", 1);
	check_log(each_level,
		  "fusee: an error: why\nfusee: a warning\nfusee: info\nfusee: debug\n");
}

/* A line that is too long is truncated, and is still one line. */
TEST(log_long_line)
{
	struct buf b = stderr_of(long_line);

	CHECK(b.len > 4000 && b.len < 4200);
	CHECK(!memcmp(b.p, "fusee: xxx", 10));
	CHECK(memchr(b.p, '\n', b.len) == b.p + b.len - 1);
	buf_fini(&b);
}

/* ---- utf8 ---- */

/* Length of the character at p by the definition: decode, then look at the number. */
static size_t by_definition(const uint8_t *p, size_t len)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = p[0] < 0x80             ? 1
		   : (p[0] & 0xe0) == 0xc0 ? 2
		   : (p[0] & 0xf0) == 0xe0 ? 3
		   : (p[0] & 0xf8) == 0xf0 ? 4
					   : 0;
	uint32_t c;

	if (n <= 1)
		return n;
	if (n > len)
		return 0;
	c = p[0] & (0x7f >> n);
	for (size_t i = 1; i < n; i++) {
		if (p[i] >> 6 != 2)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	return c < smallest[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : n;
}

static void check_char(const uint8_t *p, size_t len)
{
	size_t want = by_definition(p, len), got = utf8_char((const char *)p, len);

	if (got == want)
		return;
	fprintf(stderr, "# %02x %02x %02x %02x, %zu bytes: %zu, not %zu\n", p[0], p[1], p[2], p[3],
		len, got, want);
	exit(1);
}

/* All of up to three bytes; of four all leads and second bytes, with the borders of the others. */
TEST(utf8_each_character)
{
	static const uint8_t last[] = {0x00, 0x7f, 0x80, 0x9a, 0xbf, 0xc0, 0xff};

	for (uint32_t i = 0; i < 1 << 24; i++) {
		uint8_t p[4] = {(uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i, 0};

		check_char(p, 3);
		if (!(i & 0xff))
			check_char(p, 2);
		if (!(i & 0xffff))
			check_char(p, 1);
	}
	for (uint32_t i = 0; i < 1 << 16; i++)
		for (size_t k = 0; k < 49; k++) {
			uint8_t p[4] = {(uint8_t)(i >> 8), (uint8_t)i, last[k / 7], last[k % 7]};

			check_char(p, 4);
		}
}

TEST(utf8_texts)
{
	static const struct {
		const char *text, *clean, *printable; /* NULL: the same as text */
	} cases[] = {
		{"", NULL, NULL},
		{"plain", NULL, NULL},
		{"fusée \xf0\x9f\x9a\x80", NULL, NULL},
		{"caf\xe9", "caf\xef\xbf\xbd", "caf\xef\xbf\xbd"}, /* Latin-1 */
		{"end \xe2\x82", "end \xef\xbf\xbd\xef\xbf\xbd", "end \xef\xbf\xbd\xef\xbf\xbd"},
		{"\xed\xa0\x80!", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd!",
		 "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd!"}, /* a surrogate */
		{"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd", "\xef\xbf\xbd\xef\xbf\xbd"}, /* overlong */
		{"a\tb\n\x1b[31m", NULL,
		 "a\xef\xbf\xbd"
		 "b\xef\xbf\xbd\xef\xbf\xbd[31m"},
		{"\x7f", NULL, "\xef\xbf\xbd"},
		{"\xc2\x9b"
		 "31m",
		 NULL,
		 "\xef\xbf\xbd"
		 "31m"},                                                /* CSI in one character */
		{"\xc2\xa0", NULL, NULL},                               /* the first behind C1 */
		{"a\xe2\x80\xaegpj.exe", NULL, "a\xef\xbf\xbdgpj.exe"}, /* U+202E */
		{"\xe2\x81\xa7|\xe2\x80\x8f|\xd8\x9c|\xef\xbb\xbf|\xc2\xad|\xf3\xa0\x81\x81", NULL,
		 "\xef\xbf\xbd|\xef\xbf\xbd|\xef\xbf\xbd|\xef\xbf\xbd|\xef\xbf\xbd|\xef\xbf\xbd"},
		{"\xe2\x80\x8d\xe2\x80\x8c", NULL, NULL},         /* joiners are part of words */
		{"\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d", NULL, NULL}, /* Hebrew letters */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *text = cases[i].text;
		size_t len = strlen(text);
		struct buf b = {0};

		CHECK_INT(utf8_valid(text, len), !cases[i].clean);
		CHECK_INT(utf8_printable(text, len), !cases[i].clean && !cases[i].printable);
		CHECK_INT(utf8_clean(&b, text, len), 0);
		CHECK(equal(&b, cases[i].clean ? cases[i].clean : text));
		CHECK(utf8_valid(b.p, b.len));
		buf_reset(&b);
		CHECK_INT(utf8_clean_printable(&b, text, len), 0);
		CHECK(equal(&b, cases[i].printable ? cases[i].printable : text));
		CHECK(utf8_printable(b.p, b.len));
		buf_fini(&b);
	}
	CHECK(utf8_valid("a\0b", 3)); /* a NUL is a character */
	CHECK(!utf8_printable("a\0b", 3));
}

/* ---- text ---- */

TEST(text_numbers)
{
	char buf[32];

	CHECK_STR(text_number(buf, 0), "0");
	CHECK_STR(text_number(buf, 999), "999");
	CHECK_STR(text_number(buf, 1000), "1,000");
	CHECK_STR(text_number(buf, 1234567), "1,234,567");
	CHECK_STR(text_number(buf, UINT64_MAX), "18,446,744,073,709,551,615");
	CHECK_STR(text_bytes(buf, 0), "0 B");
	CHECK_STR(text_bytes(buf, 999), "999 B");
	CHECK_STR(text_bytes(buf, 1000), "1.0 kB");
	CHECK_STR(text_bytes(buf, 9949), "9.9 kB");
	CHECK_STR(text_bytes(buf, 9950), "10 kB");
	CHECK_STR(text_bytes(buf, 18432), "18 kB");
	CHECK_STR(text_bytes(buf, 999499), "999 kB");
	CHECK_STR(text_bytes(buf, 999500), "1.0 MB");
	CHECK_STR(text_bytes(buf, 1200000), "1.2 MB");
	CHECK_STR(text_bytes(buf, UINT64_MAX), "18446744 TB");
}

TEST(text_durations)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
		{"0", 0},
		{"90", 90000000000},
		{"10s", 10000000000},
		{"1.5m", 90000000000},
		{"2h", 7200000000000},
		{"250ms", 250000000},
		{"3us", 3000},
		{"7ns", 7},
		{"0.5ns", 1},
		{"1d", 86400000000000},
		{"2min", 120000000000},
		{"1S", 1000000000},
	};
	static const char *const bad[] = {"",    "s",   "-1s",   "1 s",  "1x", "1ss",
					  "nan", "inf", "1e300", "10ss", "5y", "106752d"};
	uint64_t v;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		CHECK_INT(text_duration(good[i].text, &v), 0);
		CHECK_INT(v, good[i].ns);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		v = 77;
		if (text_duration(bad[i], &v) != -EINVAL)
			fprintf(stderr, "# '%s' was taken\n", bad[i]);
		CHECK_INT(text_duration(bad[i], &v), -EINVAL);
		CHECK_INT(v, 77);
	}
}

TEST(text_sizes)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{"0", 0},      {"4096", 4096},    {"64KiB", 65536},     {"16kB", 16000},
		{"8k", 8192},  {"1.5M", 1572864}, {"2GiB", 2147483648}, {"3gb", 3000000000},
		{"100b", 100}, {"1MB", 1000000},
	};
	static const char *const bad[] = {"",    "k",   "-1",     "1 k",    "1kk", "1T",
					  "nan", "inf", "9.3e18", "64KiB ", "8g8"};
	uint64_t v;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		CHECK_INT(text_size(good[i].text, &v), 0);
		CHECK_INT(v, good[i].bytes);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_INT(text_size(bad[i], &v), -EINVAL);
}

TEST(text_rates)
{
	static const char *const bad[] = {"",    "hz",    "0",   "-1", "20001",
					  "99x", "99 hz", "nan", "inf"};
	double hz = 0;

	CHECK(!text_rate("99", &hz) && hz == 99);
	CHECK(!text_rate("0.5Hz", &hz) && hz == 0.5);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_INT(text_rate(bad[i], &hz), -EINVAL);
	CHECK(hz == 0.5);
}

/* ---- hashmap ---- */

static void count_entries(void *arg, uint64_t key, void *value)
{
	CHECK(*(uint64_t *)value == key);
	(*(uint64_t *)arg)++;
}

/* Against an array: keys that collide, are replaced and are removed in the middle of a chain. */
TEST(hashmaps_agree_with_an_array)
{
	static uint64_t keys[1000];
	static bool present[1000];
	struct hashmap map = {0};
	uint64_t n = 0, seen = 0;

	CHECK(!hashmap_get(&map, 1) && !hashmap_del(&map, 1));
	for (uint32_t i = 0; i < 1000; i++)
		keys[i] = (uint64_t)i << (i % 3 * 20);
	srandom(1);
	for (int i = 0; i < 50000; i++) {
		uint32_t k = (uint32_t)random() % 1000;

		if (random() % 3) {
			CHECK_INT(hashmap_put(&map, keys[k], &keys[k]), 0);
			n += !present[k];
			present[k] = true;
		} else {
			CHECK(!hashmap_del(&map, keys[k]) == !present[k]);
			n -= present[k];
			present[k] = false;
		}
		k = (uint32_t)random() % 1000;
		CHECK(!hashmap_get(&map, keys[k]) == !present[k]);
		CHECK(map.n == n);
	}
	hashmap_each(&map, count_entries, &seen);
	CHECK(seen == n && n > 100);
	hashmap_fini(&map);
}

/* ---- assert ---- */

static int evaluated;

static bool is_even(int n)
{
	evaluated++;
	return n % 2 == 0;
}

static void pass_assertions(void)
{
	fusee_assert(is_even(2));
	fusee_require(is_even(4));
	if (fusee_fails(is_even(6)) || evaluated != 3)
		exit(1);
}

static void fail_assert_often(void)
{
	for (int i = 0; i < 5; i++)
		fusee_assert(is_even(2 * i + 1));
	if (evaluated != 5 || !fusee_fails(is_even(3)))
		exit(1);
}

static void fail_require(void)
{
	fusee_require(is_even(7));
}

/* Runs f in a process with FUSEE_ASSERT=value (NULL: unset): its status, its lines on stderr. */
static int status_of(void (*f)(void), const char *value, int *lines)
{
	char text[4096] = "";
	int status, ends[2];
	pid_t pid;

	CHECK(!pipe(ends));
	pid = fork();
	if (!pid) {
		dup2(ends[1], STDERR_FILENO);
		if (value)
			setenv("FUSEE_ASSERT", value, 1);
		else
			unsetenv("FUSEE_ASSERT");
		f();
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	close(ends[1]);
	CHECK(read(ends[0], text, sizeof(text) - 1) >= 0);
	close(ends[0]);
	*lines = 0;
	for (char *p = text; (p = strstr(p, "test_base.c:")); p++)
		*lines += strstr(p, ": assertion failed: is_even(") != NULL;
	return status;
}

TEST(assertions_that_hold_say_nothing)
{
	int lines;

	CHECK_INT(status_of(pass_assertions, "abort", &lines), 0);
	CHECK_INT(lines, 0);
}

static void put_null(void)
{
	struct hashmap map = {0};

	if (hashmap_put(&map, 1, NULL) != -EINVAL || map.n)
		exit(1);
}

TEST(hashmaps_hold_no_null)
{
	int lines, status = status_of(put_null, "abort", &lines);

	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
#ifndef FUSEE_DEBUG_ASSERT
	CHECK_INT(status_of(put_null, NULL, &lines), 0);
#endif
}

TEST(assertions_that_fail_abort_or_are_logged_once)
{
	int lines, status = status_of(fail_assert_often, NULL, &lines);

#ifdef FUSEE_DEBUG_ASSERT
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	CHECK_INT(lines, 1);
#else
	CHECK_INT(status, 0);
	CHECK_INT(lines, 2); /* two places */
#endif
	status = status_of(fail_assert_often, "abort", &lines);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	CHECK_INT(lines, 1);
	status = status_of(fail_require, NULL, &lines);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	CHECK_INT(lines, 1);
}
