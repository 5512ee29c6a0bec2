// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/pipeline/preceding.c core/events/bpf_record.c bpf/records.h
/* The kernel's record of a thread's labels: what fills it is believed, and becomes sorted texts. */
#include "events/internal/bpf_record.h"
#include "pipeline/internal/preceding.h"

#include "test.h"

static struct record_labels r;

static void begin(void)
{
	memset(&r, 0, sizeof(r));
	r.head.size = RECORD_LABELS_HEAD;
}

static void add_bytes(const char *key, uint8_t key_len, const char *value, uint8_t value_len,
		      uint8_t truncated)
{
	const struct record_text t = {.key = key_len, .value = value_len, .truncated = truncated};

	memcpy(r.texts + r.bytes, &t, sizeof(t));
	memcpy(r.texts + r.bytes + sizeof(t), key, key_len);
	memcpy(r.texts + r.bytes + sizeof(t) + key_len, value, value_len);
	r.bytes += (uint32_t)sizeof(t) + key_len + value_len;
	r.n++;
	r.head.size = (uint32_t)RECORD_LABELS_HEAD + r.bytes;
}

static void add(const char *key, const char *value, uint8_t truncated)
{
	add_bytes(key, (uint8_t)strlen(key), value, (uint8_t)strlen(value), truncated);
}

/* What they become: "name=value,". */
static const char *texts(void)
{
	static struct preceding p;
	static char text[SAMPLE_TEXTS * 2];
	struct sample_ids ids;
	size_t n = 0;

	CHECK(bpf_record_has_texts(&r));
	preceding_set_ids(&p, &r);
	ids = preceding_take_ids(&p);
	CHECK(ids.texts_len <= SAMPLE_TEXTS);
	text[0] = '\0';
	for (const unsigned char *at = ids.texts; at < ids.texts + ids.texts_len;) {
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%.*s=%.*s,", at[0], at + 2,
				      at[1], at + 2 + at[0]);
		at += 2u + at[0] + at[1];
	}
	ids = preceding_take_ids(&p);
	CHECK(!ids.texts_len);
	return text;
}

TEST(sorted_by_name)
{
	begin();
	CHECK_STR(texts(), "");
	add("b", "1", 0);
	add("ab", "2", 0);
	add("a", "3", 0);
	add("b", "the first counts", 0);
	CHECK_STR(texts(), "a=3,ab=2,b=1,");
}

/* They end with "...", behind a complete character. */
TEST(truncated)
{
	begin();
	add("key", "0123456789", 2);
	CHECK_STR(texts(), "key=0123456...,");
	begin();
	add("longer", "value", 1);
	CHECK_STR(texts(), "lon...=value,");
	begin();
	add("k", "01\xe2\x82\xac\xe2\x82\xac", 2);
	CHECK_STR(texts(), "k=01\xe2\x82\xac...,");
	begin();
	add("k", "0\xe2\x82\xac\xe2\x82\xac", 2);
	CHECK_STR(texts(), "k=0\xe2\x82\xac...,");
	begin();
	add("k", "01\xe2\x82\xac\xe2\x82", 2);
	CHECK_STR(texts(), "k=01...,");
	begin();
	add("k", "\x80\x80\x80\x80\x80\x80\x80\x80\x80", 2); /* no text at all */
	CHECK(strlen(texts()) <= 2 + 9 + 1);
	begin();
	add("k", "ab", 2); /* the kernel says so of no text as short */
	CHECK_STR(texts(), "k=ab,");
}

TEST(as_many_and_as_long_as_may_be)
{
	char key[RECORD_TEXT_KEY], value[RECORD_TEXT_VALUE];

	begin();
	memset(key, 0x80, sizeof(key));
	memset(value, 0x80, sizeof(value));
	for (uint32_t i = 0; i < RECORD_TEXTS; i++) {
		key[0] = (char)('a' + i);
		add_bytes(key, sizeof(key), value, sizeof(value), 3);
	}
	CHECK_INT(r.head.size, sizeof(r));
	CHECK(strlen(texts()) > 1000);
}

TEST(records_that_contradict_themselves)
{
	uint32_t size;

	begin();
	add("key", "value", 0);
	CHECK(bpf_record_has_texts(&r));
	size = r.head.size;
	r.n = 2;
	CHECK(!bpf_record_has_texts(&r));
	r.n = 0;
	CHECK(!bpf_record_has_texts(&r));
	r.n = UINT32_MAX;
	CHECK(!bpf_record_has_texts(&r));
	r.n = 1;
	r.bytes--;
	CHECK(!bpf_record_has_texts(&r));
	r.head.size--;
	CHECK(!bpf_record_has_texts(&r));
	r.bytes += 2;
	r.head.size = size + 1;
	CHECK(!bpf_record_has_texts(&r));
	r.bytes = UINT32_MAX;
	CHECK(!bpf_record_has_texts(&r));
	begin();
	add_bytes("key", 3, "value", 5, 0);
	r.texts[0] = 255; /* of the name */
	CHECK(!bpf_record_has_texts(&r));
	r.texts[0] = 3;
	r.texts[1] = RECORD_TEXT_VALUE + 1;
	CHECK(!bpf_record_has_texts(&r));
}
