/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/sinks/parquet
/* Large files of sink.parquet in a bucket, and where requests go; as test_sink_parquet_bucket. */
#include "lib/fakehost.h"
#include "lib/served.h"
#include "lib/served_s3.h"

#include "bucket/bucket.h"

/* ---- parts ---- */

/* Sends a file of that many bytes in parts of 1000; the object is big/NAME. */
static int put_big(struct fake *f, const char *name, uint32_t bytes)
{
	struct fusee_http_options http = {.headers = {0},
					  .ca_file = "",
					  .cert_file = "",
					  .key_file = "",
					  .proxy = "",
					  .timeout = FUSEE_MINUTE,
					  .connect_timeout = FUSEE_MINUTE};
	struct fusee_label headers[] = {
		fusee_text_label("x-amz-storage-class", "STANDARD_IA"),
		fusee_text_label("X-Amz-Expected-Bucket-Owner", "OWNER"),
		fusee_text_label("x-amz-server-side-encryption-customer-algorithm", "AES256")};
	struct bucket_options o = {"s3://profiles/big", endpoint, "", "", &http};
	struct fusee_self self = {(struct fusee_instance *)(void *)f, &f->host};
	int fd = bucket_temporary(""), r;
	struct bucket *b;

	http.headers = (struct fusee_table)FUSEE_TABLE(headers);
	CHECK_INT(bucket_open(&b, &self, &o), 0);
	CHECK(fd >= 0);
	for (uint32_t i = 0; i < bytes; i++) {
		uint8_t c = (uint8_t)(i * 2654435761u >> 24);

		CHECK(write(fd, &c, 1) == 1);
	}
	b->part_bytes = 1000;
	r = bucket_put(b, (struct fusee_sink_out *)(void *)f, name, fd, bytes);
	close(fd);
	bucket_close(b);
	return r;
}

static void check_big(const char *name, uint32_t bytes)
{
	int fd = open(text("%s/objects/big/%s", dir, name), O_RDONLY);
	struct buf b = {0};

	CHECK(fd >= 0);
	CHECK_INT(buf_read_fd(&b, fd, 1 << 20), 0);
	close(fd);
	CHECK_INT(b.len, bytes);
	for (uint32_t i = 0; i < bytes; i++)
		CHECK((uint8_t)b.p[i] == (uint8_t)(i * 2654435761u >> 24));
	buf_fini(&b);
}

TEST(large_files_go_in_parts)
{
	static const struct {
		uint32_t bytes;
		int parts;
	} all[] = {{0, 0}, {1000, 0}, {1001, 2}, {3000, 3}, {3500, 4}, {12345, 13}};
	struct fake *f;
	int parts = 0;

	begin();
	f = sink_of("s3://profiles");
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		CHECK_INT(put_big(f, text("file=%zu", i), all[i].bytes), 0);
		check_big(text("file=%zu", i), all[i].bytes);
		parts += all[i].parts;
		CHECK_INT(kinds("part"), parts);
	}
	CHECK_INT(kinds("put"), 2);
	CHECK_INT(kinds("abort"), 0);
	CHECK_INT(fake_count(f, "uploads{end=\"complete\"}"), 4);
	/* the object's headers, for what begins it alone */
	CHECK_INT(count("grep STANDARD_IA log | grep -c '\"kind\": \"part\"'"), 0);
	CHECK_INT(count("grep STANDARD_IA log | grep -c '\"kind\": \"begin\"'"), 4);
	/* but some are for each request */
	CHECK_INT(count("grep OWNER log | grep -c '\"kind\": \"part\"'"), parts);
	CHECK_INT(count("grep AES256 log | grep -c '\"kind\": \"part\"'"), parts);
	CHECK_INT(count("grep OWNER log | grep AES256 | grep -c '\"kind\": \"complete\"'"), 4);
	fake_free(f);
}

TEST(parts_that_fail)
{
	/* libcurl repeats a request that has no answer if the connection is not new */
	static const struct {
		const char *fault;
		int result;
		const char *why;
		int aborts; /* of an upload that was begun */
	} all[] = {
		{"begin 1 503 SlowDown", -EAGAIN, "answered 503: SlowDown", 0},
		{"begin 1 200 -", -EBADMSG, "began an upload without an id", 0},
		{"begin 1 200 truncated", -EAGAIN, "began an upload without an id", 0},
		{"part2 1 503 SlowDown Retry-After:3", -EAGAIN, "answered 503, again in 3 s", 1},
		{"part3 2 0 reset", -EAGAIN, "no answer from", 1},
		{"part4 1 403 AccessDenied", -EAGAIN, "the access key may not write", 1},
		{"part1 1 200 -", -EBADMSG, "took a part without a tag (ETag)", 1},
		{"part1 1 404 NoSuchUpload", -EAGAIN, "answered 404: NoSuchUpload", 1},
		{"complete 1 200 InternalError", -EAGAIN, "answered 200: InternalError", 1},
		{"complete 1 500 InternalError", -EAGAIN, "answered 500: InternalError", 1},
		{"complete 2 0 reset", -EAGAIN, "no answer from", 1},
		{"complete 1 200 truncated", -EAGAIN, "did not say that 'file-11' is complete", 1},
		{"complete 1 200 -", -EAGAIN, "did not say that 'file-12' is complete", 1},
	};
	struct fake *f;
	int aborts = 0;

	begin();
	f = sink_of("s3://profiles");
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		put("faults", text("%s\n", all[i].fault));
		fake_forget(f);
		CHECK_INT(put_big(f, text("file-%zu", i), 3500), all[i].result);
		if (!strstr(f->error, all[i].why))
			CHECK_STR(f->error, all[i].why);
		aborts += all[i].aborts;
		CHECK_INT(kinds("abort"), aborts);
		CHECK_INT(objects(), (int)i);
		/* all of it is sent again */
		CHECK_INT(put_big(f, text("file-%zu", i), 3500), 0);
		check_big(text("file-%zu", i), 3500);
	}
	CHECK_INT(fake_count(f, "uploads{end=\"aborted\"}"), aborts);
	CHECK_INT(count("grep OWNER log | grep -c '\"kind\": \"abort\"'"), aborts);
	CHECK_INT(count("grep AES256 log | grep -c '\"kind\": \"abort\"'"), 0);
	put("faults", "part2 1 500 InternalError\nabort 1 500 InternalError\n");
	fake_forget(f);
	CHECK_INT(put_big(f, "last", 3500), -EAGAIN);
	CHECK(strstr(f->error, "answered 500: InternalError"));
	CHECK_INT(fake_count(f, "uploads{end=\"not aborted\"}"), 1);
	fake_free(f);
}

TEST(a_file_that_becomes_shorter)
{
	struct fusee_http_options http = {.ca_file = "",
					  .cert_file = "",
					  .key_file = "",
					  .proxy = "",
					  .timeout = FUSEE_MINUTE,
					  .connect_timeout = FUSEE_MINUTE};
	struct bucket_options o = {"s3://profiles", endpoint, "", "", &http};
	struct fusee_self self;
	struct bucket *b;
	struct fake *f;
	int fd;

	begin();
	f = sink_of("s3://profiles");
	self = (struct fusee_self){(struct fusee_instance *)(void *)f, &f->host};
	CHECK_INT(bucket_open(&b, &self, &o), 0);
	fd = bucket_temporary("");
	CHECK(fd >= 0 && write(fd, "short", 5) == 5);
	CHECK_INT(bucket_put(b, (struct fusee_sink_out *)(void *)f, "x", fd, 6), -EIO);
	CHECK_STR(f->error, "cannot read 'x' to send it: it was truncated");
	CHECK_INT(requests(), 0);
	close(fd);
	bucket_close(b);
	fake_free(f);
}

/* ---- addresses ---- */

/* Where requests would go: nothing is sent. */
TEST(amazons_servers)
{
	static const struct {
		const char *bucket, *endpoint, *region, *url, *host, *above, *path;
	} all[] = {
		{"s3://profiles/x", "", "", "https://profiles.s3.us-east-1.amazonaws.com",
		 "profiles.s3.us-east-1.amazonaws.com", "", "/x"},
		{"s3://profiles", "", "eu-west-1", "https://profiles.s3.eu-west-1.amazonaws.com",
		 "profiles.s3.eu-west-1.amazonaws.com", "", ""},
		{"s3://with.dots", "", "eu-west-1", "https://s3.eu-west-1.amazonaws.com",
		 "s3.eu-west-1.amazonaws.com", "", "/with.dots"},
		{"s3://profiles", "", "cn-north-1",
		 "https://profiles.s3.cn-north-1.amazonaws.com.cn",
		 "profiles.s3.cn-north-1.amazonaws.com.cn", "", ""},
		{"s3://profiles/a b", "https://minio:443/s3/", "", "https://minio:443/s3", "minio",
		 "/s3", "/profiles/a%20b"},
		{"s3://profiles", "http://minio:443", "", "http://minio:443", "minio:443", "",
		 "/profiles"},
		{"s3://profiles", "http://[::1]:80", "", "http://[::1]:80", "[::1]", "",
		 "/profiles"},
	};
	struct fusee_http_options http = {
		.ca_file = "", .cert_file = "", .key_file = "", .proxy = ""};
	struct fusee_self self;
	struct bucket *b;
	struct fake *f;

	begin();
	f = sink_of("s3://profiles");
	self = (struct fusee_self){(struct fusee_instance *)(void *)f, &f->host};
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		struct bucket_options o = {all[i].bucket, all[i].endpoint, all[i].region, "",
					   &http};

		CHECK_INT(bucket_open(&b, &self, &o), 0);
		CHECK_STR(b->url, all[i].url);
		CHECK_STR(b->host, all[i].host);
		CHECK_STR(b->above, all[i].above);
		CHECK_STR(b->path, all[i].path);
		bucket_close(b);
	}
	setenv("AWS_DEFAULT_REGION", "af-south-1", 1);
	CHECK_INT(bucket_open(&b, &self,
			      &(struct bucket_options){"s3://profiles", "", "", "", &http}),
		  0);
	CHECK_STR(b->region, "af-south-1");
	bucket_close(b);
	fake_free(f);
}
