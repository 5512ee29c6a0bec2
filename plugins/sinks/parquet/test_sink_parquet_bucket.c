/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/sinks/parquet
/* The bucket of sink.parquet, against tests/run/lib/s3_server.py: run from the source's root. */
#include <sys/resource.h>

#include "lib/fakehost.h"
#include "lib/begun.h"
#include "lib/cancel.h"
#include "lib/served.h"
#include "lib/served_s3.h"

#define KEY "date=2026-11-21/hour=08/2026-11-21T08-15-00Z-a_b-0700000000000000.parquet"

static int deliver(struct fake *f, uint32_t id, uint32_t stacks)
{
	struct builder *b;
	int r = fake_consume(f, fake_profile(&b, id, stacks, "host", "a/b", NULL), 0);

	builder_free(b);
	return r;
}

/* ---- what arrives ---- */

TEST(a_window_is_two_objects)
{
	const char *stacks, *samples;
	struct fake *f;

	begin();
	f = sink_of("s3://profiles");
	CHECK_INT(deliver(f, 7, 3), 0);
	CHECK_INT(objects(), 2);
	CHECK_INT(fake_count(f, "objects_sent"), 2);
	CHECK_INT(fake_count(f, "rows_written"), 3);
	CHECK_INT(fake_count(f, "bytes_written"), 0); /* into a folder */
	CHECK_INT(count("cat objects/*/*/*/* | wc -c"), fake_count(f, "bytes_sent"));
	CHECK(!access(text("%s/objects/samples/" KEY, dir), F_OK));
	CHECK(!access(text("%s/objects/stacks/" KEY, dir), F_OK));
	CHECK(!strncmp(read_file("objects/stacks/" KEY), "PAR1", 4));
	/* no reader sees samples without their stacks */
	stacks = strstr(read_file("log"), "/stacks/");
	samples = strstr(read_file("log"), "/samples/");
	CHECK(stacks && samples && stacks < samples);
	CHECK(logged("/profiles/stacks/date%3D2026-11-21/hour%3D08/"));
	CHECK(logged("\"content-type\": \"application/vnd.apache.parquet\""));
	/* the same once more is the same */
	CHECK_INT(deliver(f, 7, 3), 0);
	CHECK_INT(objects(), 2);
	CHECK_INT(deliver(f, 8, 3), 0);
	CHECK_INT(objects(), 4);
	fake_free(f);
}

TEST(folder_and_bucket_have_the_same)
{
	struct fake *f;
	int inode;

	begin();
	f = begun(fake_new(&fusee_plugin, "dir", text("%s/store", dir), "bucket", "s3://profiles/",
			   "endpoint", endpoint, NULL));
	CHECK_INT(deliver(f, 7, 300), 0);
	CHECK_INT(count("rm -r store/.unfinished && diff -r store objects && find store -type f | "
			"wc -l"),
		  2);
	/* a bucket that is away keeps nothing from the folder */
	put("faults", "put 1 503 SlowDown\n");
	CHECK_INT(deliver(f, 9, 3), -EAGAIN);
	CHECK_INT(count("find store/s* -type f | wc -l"), 4);
	CHECK_INT(objects(), 2);
	/* the next attempt leaves the folder's files as they are */
	inode = count("stat -c %i store/samples/*/*/*-0900000000000000.parquet");
	CHECK_INT(deliver(f, 9, 3), 0);
	CHECK_INT(count("stat -c %i store/samples/*/*/*-0900000000000000.parquet"), inode);
	CHECK_INT(count("find store/.unfinished -type f ! -name 'lock-*' | wc -l"), 0);
	CHECK_INT(count("rm -r store/.unfinished && diff -r store objects && find store -type f | "
			"wc -l"),
		  4);
	fake_free(f);
}

TEST(prefixes_and_places)
{
	static const char *const all[][3] = {
		{"s3://profiles/a b/\xc3\xbc=+1", "", "objects/a b/\xc3\xbc=+1/samples/" KEY},
		{"s3://profiles/deep/er/", "/", "objects/deep/er/samples/" KEY},
		{"s3://profiles", "/storage", "objects/samples/" KEY},
		{"s3://profiles/x", "/storage/", "objects/x/samples/" KEY}};
	struct fake *f;

	begin();
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		f = begun(fake_new(&fusee_plugin, "bucket", all[i][0], "endpoint",
				   text("%s%s", endpoint, all[i][1]), "region", "eu-west-1", NULL));
		CHECK_INT(deliver(f, 7, 1), 0);
		CHECK(!access(text("%s/%s", dir, all[i][2]), F_OK));
		fake_free(f);
	}
	CHECK(logged("/eu-west-1/s3/aws4_request"));
}

TEST(more_headers)
{
	struct fake *f;

	begin();
	f = begun(fake_new(
		&fusee_plugin, "bucket", "s3://profiles", "endpoint", endpoint, "headers",
		"X-Amz-Storage-Class=STANDARD_IA,x-amz-meta-team= a   b ,Cache-Control=no-cache",
		NULL));
	CHECK_INT(deliver(f, 7, 1), 0);
	CHECK(logged("\"x-amz-storage-class\": \"STANDARD_IA\""));
	CHECK(logged("\"cache-control\": \"no-cache\""));
	fake_free(f);
}

/* ---- keys ---- */

TEST(keys_of_a_file)
{
	struct fake *f;

	begin();
	keys("", "");
	put("keys", "# keys\n[other]\naws_access_key_id = AKOTHER\naws_secret_access_key=x\n"
		    "[default]\r\n  aws_access_key_id=AKTEST\r\n"
		    "aws_secret_access_key = secret/of+AKTEST  \nregion = nowhere\n");
	f = begun(fake_new(&fusee_plugin, "bucket", "s3://profiles", "endpoint", endpoint,
			   "credentials_file", text("%s/keys", dir), NULL));
	CHECK_INT(deliver(f, 1, 1), 0);
	CHECK(!logged("x-amz-security-token"));
	/* the file is read each time */
	setenv("AWS_PROFILE", "other", 1);
	CHECK_INT(deliver(f, 2, 1), FAKE_DENIED);
	CHECK(strstr(f->error, "answered 403: InvalidAccessKeyId: the server does not know"));
	put("token", "a-session\n");
	put("keys", "aws_access_key_id=AKTEST\naws_secret_access_key=secret/of+AKTEST\n"
		    "aws_session_token=an-old-session\n");
	CHECK_INT(deliver(f, 3, 1), FAKE_DENIED);
	CHECK(strstr(f->error, "answered 400: ExpiredToken: the session's keys have expired"));
	put("keys", "aws_access_key_id=AKTEST\naws_secret_access_key=secret/of+AKTEST\n"
		    "aws_session_token=a-session\n");
	CHECK_INT(deliver(f, 3, 1), 0);
	CHECK(logged("\"x-amz-security-token\": \"a-session\""));
	CHECK(!unlink(text("%s/keys", dir)));
	CHECK_INT(deliver(f, 4, 1), -EAGAIN);
	CHECK_STR(f->error, text("cannot read '%s/keys': No such file or directory", dir));
	CHECK_INT(fake_count(f, "windows_lost{reason=\"bucket\"}"), 0);
	fake_free(f);
}

TEST(wrong_keys)
{
	struct fake *f;

	begin();
	keys("AKTEST", "wrong");
	f = sink_of("s3://profiles");
	CHECK_INT(deliver(f, 1, 1), FAKE_DENIED);
	CHECK_STR(f->error,
		  text("'%s' answered 403: SignatureDoesNotMatch: the secret key is not that of "
		       "the access key, 'region' (us-east-1) is wrong, or a proxy changes requests",
		       endpoint));
	fake_free(f);
}

static void no_keys(const char *file, int err, const char *why)
{
	struct fake *f = fake_new(&fusee_plugin, "bucket", "s3://profiles", "credentials_file",
				  file, NULL);

	CHECK_INT(fake_init(f), err);
	CHECK_STR(f->error, why);
	fake_free(f);
}

TEST(keys_that_are_not_there)
{
	char file[128], key[1024];

	begin();
	snprintf(file, sizeof(file), "%s/keys", dir);
	keys("AKTEST", "");
	no_keys("", -ENOENT,
		"no keys for the bucket: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
		"'credentials_file'");
	memset(key, 'x', sizeof(key) - 1);
	key[sizeof(key) - 1] = '\0';
	keys("AKTEST", key);
	no_keys("", -EINVAL,
		"AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY or AWS_SESSION_TOKEN of the "
		"environment are too long for keys");
	no_keys(file, -ENOENT, text("cannot read '%s': No such file or directory", file));
	put("keys", "[default]\naws_access_key_id=AKTEST\n[other]\naws_secret_access_key=x\n");
	no_keys(file, -ENOENT,
		text("no aws_access_key_id and aws_secret_access_key of [default] in '%s'", file));
	put("keys", text("aws_access_key_id=%.200s\naws_secret_access_key=x\n", key));
	no_keys(file, -EINVAL, text("a key in '%s' is too long, or no text", file));
	put("keys", "aws_access_key_id=A\tB\x01\naws_secret_access_key=x\n");
	no_keys(file, -EINVAL, text("a key in '%s' is too long, or no text", file));
}

/* ---- answers ---- */

TEST_FOR(what_answers_mean, 180)
{
	static const struct {
		const char *fault;
		int result;
		const char *sentence;
	} all[] = {
		{"1 503 SlowDown Retry-After:7", -EAGAIN,
		 "answered 503, again in 7 s: SlowDown: what the server says"},
		{"1 500 InternalError", -EAGAIN,
		 "answered 500: InternalError: what the server says"},
		{"1 502 -", -EAGAIN, "answered 502: bad gateway"},
		{"1 429 TooManyRequests", -EAGAIN, "answered 429: TooManyRequests: what"},
		{"1 400 RequestTimeout", -EAGAIN, "answered 400: RequestTimeout: what the server"},
		{"1 409 OperationAborted", -EAGAIN, "answered 409: OperationAborted: what the"},
		{"1 200 InternalError", -EAGAIN,
		 "answered 200: InternalError: what the server says"},
		{"1 200 Strange", -EBADMSG, "answered 200: Strange: what the server says"},
		{"2 0 reset", -EAGAIN, "the connection ended before the answer was complete"},
		{"1 403 AccessDenied", FAKE_DENIED,
		 "answered 403: AccessDenied: the access key may not write to the bucket "
		 "'profiles': it needs s3:PutObject, and s3:AbortMultipartUpload"},
		{"1 403 RequestTimeTooSkewed", FAKE_DENIED,
		 "answered 403: RequestTimeTooSkewed: the clock of this machine is wrong: set it"},
		{"1 413 EntityTooLarge", -EBADMSG, "answered 413: EntityTooLarge: what the server"},
		{"1 301 PermanentRedirect x-amz-bucket-region:eu-west-1", FAKE_DENIED,
		 "answered 301: PermanentRedirect: the bucket 'profiles' is in the region "
		 "'eu-west-1': set 'region'"},
		{"1 307 - Location:http://127.0.0.1:1/", FAKE_DENIED,
		 "answered 307: the bucket 'profiles' is at another server, or in another region "
		 "than 'us-east-1': set 'endpoint' or 'region'"},
		{"1 412 PreconditionFailed", -EBADMSG, "answered 412: PreconditionFailed: what"},
	};
	struct fake *f;

	begin();
	f = sink_of("s3://profiles");
	for (uint32_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		put("faults", text("put %s\n", all[i].fault));
		CHECK_INT(deliver(f, i, 1), all[i].result);
		if (!strstr(f->error, all[i].sentence))
			CHECK_STR(f->error, all[i].sentence);
		CHECK_INT(f->retry_named, i == 0);
		CHECK(i || f->retry_after == 7000000000ull);
		CHECK_INT(objects(), 2 * (int)i);
		CHECK_INT(deliver(f, i, 1), 0);
	}
	fake_free(f);
	f = sink_of("s3://nothing-here");
	CHECK_INT(deliver(f, 1, 1), FAKE_DENIED);
	CHECK_STR(f->error, text("'%s' answered 404: NoSuchBucket: there is no bucket "
				 "'nothing-here'",
				 endpoint));
	fake_free(f);
}

TEST(samples_wait_for_their_stacks)
{
	struct fake *f;

	begin();
	f = sink_of("s3://profiles");
	put("faults", "put 1 503 SlowDown\n");
	CHECK_INT(deliver(f, 7, 1), -EAGAIN);
	CHECK_INT(kinds("put"), 1);
	CHECK(!logged("/samples/"));
	CHECK_INT(fake_count(f, "rows_written"), 0);
	fake_free(f);
}

TEST(a_wrong_clock)
{
	struct fake *f;
	char expected[256];

	begin();
	f = sink_of("s3://profiles");
	put("faults", "clock 3600\n");
	CHECK_INT(deliver(f, 7, 1), FAKE_DENIED);
	snprintf(expected, sizeof(expected),
		 "'%s' answered 403: RequestTimeTooSkewed: the clock of this machine is ",
		 endpoint);
	CHECK(!strncmp(f->error, expected, strlen(expected)));
	CHECK(llabs(atoll(f->error + strlen(expected)) - 3600) < 30);
	CHECK(strstr(f->error, " s behind that of the server: set it"));
	put("faults", "clock -3600\n");
	CHECK_INT(deliver(f, 7, 1), FAKE_DENIED);
	CHECK(strstr(f->error, " s ahead of that of the server: set it"));
	put("faults", "clock 60\n");
	CHECK_INT(deliver(f, 7, 1), 0);
	fake_free(f);
}

TEST(no_server)
{
	struct fake *f;

	begin();
	f = begun(fake_new(&fusee_plugin, "bucket", "s3://profiles", "endpoint",
			   "http://127.0.0.1:1", NULL));
	CHECK_INT(deliver(f, 1, 1), -EAGAIN);
	CHECK_STR(f->error, "no answer from 'http://127.0.0.1:1': Connection refused");
	CHECK_INT(fake_count(f, "windows_lost{reason=\"bucket\"}"), 0);
	fake_free(f);
	put("faults", "put 1 0 hang\n");
	f = begun(fake_new(&fusee_plugin, "bucket", "s3://profiles", "endpoint", endpoint,
			   "timeout", "500ms", NULL));
	CHECK_INT(deliver(f, 1, 1), -EAGAIN);
	CHECK_STR(f->error, text("no answer from '%s': no answer in time", endpoint));
	fake_free(f);
}

static int deliver_one(struct fake *f)
{
	return deliver(f, 1, 1);
}

TEST(is_cancelled)
{
	struct fake *f;

	begin();
	put("faults", "put 1 0 hang\n");
	f = sink_of("s3://profiles");
	check_cancel(f, deliver_one);
	CHECK_INT(fake_count(f, "windows_lost{reason=\"bucket\"}"), 0);
	fake_free(f);
	/* without a bucket there is nothing to cancel */
	f = begun(fake_new(&fusee_plugin, "dir", text("%s/store", dir), NULL));
	((const struct fusee_sink_ops *)fusee_plugin.ops)->cancel(f->ctx);
	CHECK_INT(deliver(f, 1, 1), 0);
	fake_free(f);
}

/* ---- options ---- */

static void refused(const char *bucket, const char *option, const char *value, const char *why)
{
	struct fake *f = fake_new(&fusee_plugin, "bucket", bucket, option, value, NULL);

	CHECK_INT(fake_init(f), -EINVAL);
	CHECK_STR(f->error, why);
	fake_free(f);
}

TEST(refuses)
{
	static const char wrong_prefix[] =
		"option 'bucket': the prefix '%s' has empty names, "
		"'.', '..' or control characters, or more than 512 bytes";
	static const char *const prefixes[] = {"/a", "a//b", "a/../b", ".", "a\nb", "a//"};
	static const char *const names[] = {"", "ab", "a b c", "a%b", "name?x"};
	static const char *const addresses[] = {"ftp://x", "http:/x:9000", "http:///x:9000",
						"http:x", "http:/x://y"};
	static const char wrong_endpoint[] =
		"option 'endpoint': only a server and a path of plain letters, without user, "
		"password or query";

	begin();
	refused("", "endpoint", endpoint,
		"set 'dir' to a folder, 'bucket' to s3://NAME/PREFIX, or both");
	refused("profiles", "endpoint", endpoint,
		"option 'bucket': 'profiles' is not of the form s3://NAME/PREFIX");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		refused(text("s3://%s/x", names[i]), "endpoint", endpoint,
			text("option 'bucket': '%s' is not the name of a bucket: 3 to 63 letters, "
			     "digits, '-', '.', '_'",
			     names[i]));
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
		char expected[256];
		size_t n = strlen(prefixes[i]);

		/* a slash at the end is no name */
		snprintf(expected, sizeof(expected), wrong_prefix,
			 text("%.*s", (int)(n - (prefixes[i][n - 1] == '/')), prefixes[i]));
		refused(text("s3://profiles/%s", prefixes[i]), "endpoint", endpoint, expected);
	}
	for (size_t i = 0; i < sizeof(addresses) / sizeof(*addresses); i++)
		refused("s3://profiles", "endpoint", addresses[i],
			text("option 'endpoint': '%s' is not an http:// or https:// address",
			     addresses[i]));
	refused("s3://profiles", "endpoint", "http://me:secret@x", wrong_endpoint);
	refused("s3://profiles", "endpoint", "http://x/?a=b", wrong_endpoint);
	refused("s3://profiles", "endpoint", "http://x/../y", wrong_endpoint);
	refused("s3://profiles", "region", "a/b", "'a/b' is not the name of a region");
	refused("s3://profiles", "headers", "X-Amz-Date=now",
		"option 'headers': 'X-Amz-Date' is set by the plugin itself");
	refused("s3://profiles", "headers", "Authorization=me",
		"option 'headers': 'Authorization' is set by the plugin itself");
}

TEST(needs_a_bucket)
{
	static const char *const all[] = {"endpoint", "region", "credentials_file"};

	begin();
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		struct fake *f = fake_new(&fusee_plugin, "dir", dir, all[i], "http://x", NULL);

		CHECK_INT(fake_init(f), -EINVAL);
		CHECK_STR(f->error, "'endpoint', 'region' and 'credentials_file' need 'bucket'");
		fake_free(f);
	}
}

TEST(no_room_for_a_file)
{
	const struct rlimit little = {100, RLIM_INFINITY};
	struct fake *f;

	begin();
	f = sink_of("s3://profiles");
	setenv("TMPDIR", "/proc/nowhere", 1);
	CHECK_INT(deliver(f, 7, 1), -EAGAIN);
	CHECK(strstr(f->error, ".parquet': No such file or directory; TMPDIR names its folder"));
	CHECK_INT(fake_count(f, "windows_lost{reason=\"temporary file\"}"), 0);
	CHECK_INT(requests(), 0);
	setenv("TMPDIR", dir, 1);
	CHECK_INT(deliver(f, 7, 1), 0);
	/* a file that can be made, and not written */
	signal(SIGXFSZ, SIG_IGN);
	CHECK(!setrlimit(RLIMIT_FSIZE, &little));
	CHECK_INT(deliver(f, 8, 1), -EFBIG);
	CHECK(strstr(f->error, ".parquet': File too large; TMPDIR names its folder"));
	CHECK_INT(fake_count(f, "windows_lost{reason=\"temporary file\"}"), 1);
	CHECK(!setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}));
	unsetenv("TMPDIR");
	fake_free(f);
}

/* A failure that no file caused: the sentence speaks of none. */
TEST(rows_that_cannot_be_made)
{
	struct fusee_label loss = {.key = {"\xff", 1}, .str = {"lost", 4}, .num = 7};
	struct fusee_profile p;
	struct builder *b;
	struct fake *f;

	begin();
	f = sink_of("s3://profiles");
	p = *fake_profile(&b, 7, 1, "host", "h", NULL);
	p.losses = (struct fusee_table){&loss, 1, sizeof(loss)};
	CHECK_INT(fake_consume(f, &p, 0), -EILSEQ);
	builder_free(b);
	CHECK(strstr(f->error, "cannot make the rows of '") && !strstr(f->error, "TMPDIR"));
	CHECK_INT(fake_count(f, "windows_lost{reason=\"other\"}"), 1);
	CHECK_INT(fake_count(f, "windows_lost{reason=\"temporary file\"}"), 0);
	fake_free(f);
}

/* Where another attempt has its files, which the folder does not keep. */
TEST(another_attempt_beside_a_folder)
{
	struct fake *f;

	begin();
	put("faults", "put 2 503 SlowDown\n");
	f = begun(fake_new(&fusee_plugin, "dir", text("%s/store", dir), "bucket", "s3://profiles",
			   "endpoint", endpoint, NULL));
	CHECK_INT(deliver(f, 7, 1), -EAGAIN);
	setenv("TMPDIR", "/proc/nowhere", 1);
	CHECK_INT(deliver(f, 7, 1), -EAGAIN);
	CHECK(strstr(f->error, "answered 503: SlowDown"));
	/* the folder is removed */
	CHECK_INT(count("rm -r store; echo 0"), 0);
	CHECK_INT(deliver(f, 7, 1), -EAGAIN);
	CHECK(strstr(f->error, "cannot write a temporary file for '"));
	unsetenv("TMPDIR");
	CHECK_INT(deliver(f, 7, 1), 0);
	CHECK_INT(objects(), 2);
	CHECK_INT(fake_count(f, "windows_lost{reason=\"temporary file\"}"), 0);
	fake_free(f);
}
