/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/sinks/parca
/* Messages of DebuginfoService: requests as libprotobuf-c decodes them, answers as it encodes them,
 * truncated, and random bytes. */
#include "test.h"

#include "debuginfo.h"
#include "debuginfo.pb-c.h"

#define ID "0123456789abcdef0123456789abcdef01234567"

/* The message of a frame. */
static const uint8_t *message_of(const struct debuginfo_frame *f, uint32_t more, size_t *n)
{
	const uint8_t *p = (const uint8_t *)f->bytes;

	*n = f->len - 5;
	CHECK(!p[0]);
	CHECK_INT((uint32_t)p[1] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 8 | p[4],
		  *n + more);
	return p + 5;
}

#define FREE(name, m) parca__debuginfo__v1alpha1__##name##__free_unpacked(m, NULL)

TEST(requests)
{
	Parca__Debuginfo__V1alpha1__ShouldInitiateUploadRequest *should;
	Parca__Debuginfo__V1alpha1__InitiateUploadRequest *initiate;
	Parca__Debuginfo__V1alpha1__MarkUploadFinishedRequest *finished;
	struct debuginfo_frame f;
	const uint8_t *p;
	size_t n;

	debuginfo_should_initiate(&f, ID);
	p = message_of(&f, 0, &n);
	should = parca__debuginfo__v1alpha1__should_initiate_upload_request__unpack(NULL, n, p);
	CHECK(should && !should->force && !should->type && should->build_id_type == 1);
	CHECK_STR(should->build_id, ID);
	FREE(should_initiate_upload_request, should);

	debuginfo_initiate(&f, ID, 1ull << 40, "feed");
	p = message_of(&f, 0, &n);
	initiate = parca__debuginfo__v1alpha1__initiate_upload_request__unpack(NULL, n, p);
	CHECK(initiate && !initiate->force && !initiate->type && initiate->build_id_type == 1);
	CHECK_INT(initiate->size, 1ll << 40);
	CHECK_STR(initiate->build_id, ID);
	CHECK_STR(initiate->hash, "feed");
	FREE(initiate_upload_request, initiate);

	debuginfo_finished(&f, ID, "u-1");
	p = message_of(&f, 0, &n);
	finished = parca__debuginfo__v1alpha1__mark_upload_finished_request__unpack(NULL, n, p);
	CHECK(finished && !finished->type);
	CHECK_STR(finished->build_id, ID);
	CHECK_STR(finished->upload_id, "u-1");
	FREE(mark_upload_finished_request, finished);
}

TEST(messages_of_an_upload)
{
	Parca__Debuginfo__V1alpha1__UploadRequest *q;
	char id[DEBUGINFO_MAX_ID], upload[DEBUGINFO_MAX_ID];
	uint8_t all[DEBUGINFO_HEAD + 300] = {0};
	struct debuginfo_frame f;
	const uint8_t *p;
	size_t n;

	memset(id, 'a', sizeof(id) - 1);
	memset(upload, 'b', sizeof(upload) - 1);
	id[sizeof(id) - 1] = upload[sizeof(upload) - 1] = '\0';
	debuginfo_info(&f, id, upload); /* the longest */
	p = message_of(&f, 0, &n);
	q = parca__debuginfo__v1alpha1__upload_request__unpack(NULL, n, p);
	CHECK(q && q->data_case == PARCA__DEBUGINFO__V1ALPHA1__UPLOAD_REQUEST__DATA_INFO);
	CHECK_STR(q->info->build_id, id);
	CHECK_STR(q->info->upload_id, upload);
	FREE(upload_request, q);

	debuginfo_chunk(&f, 300);
	CHECK(f.len <= DEBUGINFO_HEAD);
	p = message_of(&f, 300, &n);
	memcpy(all, p, n);
	memset(all + n, 'x', 300);
	q = parca__debuginfo__v1alpha1__upload_request__unpack(NULL, n + 300, all);
	CHECK(q && q->data_case == PARCA__DEBUGINFO__V1ALPHA1__UPLOAD_REQUEST__DATA_CHUNK_DATA);
	CHECK(q->chunk_data.len == 300 && q->chunk_data.data[299] == 'x');
	FREE(upload_request, q);
	debuginfo_chunk(&f, DEBUGINFO_CHUNK);
	CHECK(f.len <= DEBUGINFO_HEAD);
}

/* An answer with these instructions. */
static struct fusee_str instructions(uint8_t *to, char *url, char *id, int strategy)
{
	Parca__Debuginfo__V1alpha1__InitiateUploadResponse a =
		PARCA__DEBUGINFO__V1ALPHA1__INITIATE_UPLOAD_RESPONSE__INIT;
	Parca__Debuginfo__V1alpha1__Instructions i = PARCA__DEBUGINFO__V1ALPHA1__INSTRUCTIONS__INIT;
	char build_id[] = ID;

	i.build_id = build_id;
	i.upload_id = id;
	i.signed_url = url;
	i.upload_strategy = (Parca__Debuginfo__V1alpha1__Strategy)strategy;
	a.upload_instructions = &i;
	return (struct fusee_str){
		(char *)to, parca__debuginfo__v1alpha1__initiate_upload_response__pack(&a, to)};
}

TEST(instructions_of_a_server)
{
	static uint8_t bytes[2 * DEBUGINFO_MAX_URL];
	static char url[DEBUGINFO_MAX_URL + 1];
	static struct debuginfo_instructions i;
	char id[] = "u-1", place[] = "https://x/y?z", none[] = "";
	struct fusee_str m;

	CHECK(debuginfo_read_instructions(instructions(bytes, none, id, 1), &i));
	CHECK_INT(i.strategy, DEBUGINFO_GRPC);
	CHECK_STR(i.upload_id, "u-1");
	m = instructions(bytes, place, id, 2);
	CHECK(debuginfo_read_instructions(m, &i));
	CHECK_INT(i.strategy, DEBUGINFO_SIGNED_URL);
	CHECK_STR(i.url, "https://x/y?z");
	for (uint64_t n = 1; n < m.len; n++) /* truncated within the message */
		CHECK(!debuginfo_read_instructions((struct fusee_str){m.p, n}, &i));
	CHECK(debuginfo_read_instructions(instructions(bytes, none, id, 7), &i));
	CHECK_INT(i.strategy, DEBUGINFO_NO_STRATEGY);
	memset(url, 'x', DEBUGINFO_MAX_URL - 1);
	CHECK(debuginfo_read_instructions(instructions(bytes, url, id, 2), &i));
	memset(url, 'x', DEBUGINFO_MAX_URL);
	CHECK(!debuginfo_read_instructions(instructions(bytes, url, id, 2), &i));
	CHECK(debuginfo_read_instructions((struct fusee_str){NULL, 0}, &i));
	CHECK_INT(i.strategy, DEBUGINFO_NO_STRATEGY);
}

TEST(reasons_of_a_server)
{
	char reason[DEBUGINFO_MAX_REASON];
	bool should;

	CHECK(debuginfo_read_should((struct fusee_str){"\x08\x01\x12\x02no", 6}, &should, reason));
	CHECK(should);
	CHECK_STR(reason, "no");
	CHECK(debuginfo_read_should((struct fusee_str){"", 0}, &should, reason));
	CHECK(!should && !*reason);
	/* fields that are not known; a group; a text that does not end; a number without an end */
	CHECK(debuginfo_read_should((struct fusee_str){"\x79zzzzzzzz\x7dzzzz\x08\x01", 16}, &should,
				    reason));
	CHECK(should);
	CHECK(!debuginfo_read_should((struct fusee_str){"\x0b", 1}, &should, reason));
	CHECK(!debuginfo_read_should((struct fusee_str){"\x12\x03no", 4}, &should, reason));
	CHECK(!debuginfo_read_should(
		(struct fusee_str){"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12}, &should,
		reason));
}
