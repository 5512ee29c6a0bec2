/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/sinks/parquet
/* Signatures against those that AWS has published: the examples of S3's manual, and the suite of
 * tests for signatures of version 4. */
#include "test.h"

#include "bucket/sigv4.h"

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define MAX 8

struct vector {
	const char *method, *path, *query, *body, *signature;
	const char *headers[2 * MAX]; /* name, value, .. */
};

#define VECTOR(method, path, query, body, signature, ...) \
	{                                                 \
		method, path, query, body, signature,     \
		{                                         \
			__VA_ARGS__                       \
		}                                         \
	}

/* The signature of a request, whose headers are in the order that they were given. */
static const char *signature(const struct sigv4_key *key, const char *time, const struct vector *v)
{
	static char value[SIGV4_AUTHORIZATION];
	struct fusee_label labels[MAX];
	char hash[SIGV4_HASH], path[128];
	uint32_t n = 0;
	const char *at;

	CHECK(sigv4_encode(path, sizeof(path), fusee_text(v->path), "/") > 0);
	for (; n < MAX && v->headers[2 * n]; n++)
		labels[n] = fusee_text_label(v->headers[2 * n], v->headers[2 * n + 1]);
	CHECK_INT(sigv4_hash(hash, fusee_text(v->body)), 0);
	CHECK_INT(sigv4_authorize(value, key,
				  &(struct sigv4_request){.method = v->method,
							  .path = path,
							  .query = v->query,
							  .headers = {labels, n, sizeof(*labels)},
							  .hash = hash},
				  time),
		  0);
	at = strstr(value, "Signature=");
	CHECK(at);
	return at + strlen("Signature=");
}

TEST(examples_of_s3)
{
	static const struct sigv4_key key = {"AKIAIOSFODNN7EXAMPLE",
					     "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
					     "us-east-1", "s3"};
	static const char host[] = "examplebucket.s3.amazonaws.com", t[] = "20130524T000000Z";
	static const struct vector all[] = {
		VECTOR("GET", "/test.txt", "", "",
		       "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41", "Host",
		       host, "Range", "bytes=0-9", "x-amz-content-sha256", EMPTY, "x-amz-date", t),
		VECTOR("PUT", "/test$file.text", "", "Welcome to Amazon S3.",
		       "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd", "Host",
		       host, "Date", "Fri, 24 May 2013 00:00:00 GMT", "x-amz-date", t,
		       "x-amz-storage-class", "REDUCED_REDUNDANCY", "x-amz-content-sha256",
		       "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"),
		VECTOR("GET", "/", "lifecycle=", "",
		       "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543", "Host",
		       host, "x-amz-content-sha256", EMPTY, "x-amz-date", t),
		VECTOR("GET", "/", "max-keys=2&prefix=J", "",
		       "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
		       "x-amz-date", t, "x-amz-content-sha256", EMPTY, "Host", host),
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		CHECK_STR(signature(&key, t, &all[i]), all[i].signature);
}

#define SUITE "20150830T123600Z"
#define HOST "Host", "example.amazonaws.com", "X-Amz-Date", SUITE

static const struct sigv4_key suite = {"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
				       "us-east-1", "service"};

#define LETTERS                                    \
	"-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ" \
	"abcdefghijklmnopqrstuvwxyz"
#define TOKEN                                                                        \
	"AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHG" \
	"BuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1N" \
	"tBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHN" \
	"VXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9" \
	"FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=="

static const struct vector all_of_suite[] = {
	VECTOR("GET", "/", "", "",
	       "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31", HOST),
	VECTOR("POST", "/", "", "",
	       "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b", HOST),
	VECTOR("GET", "/", "Param1=value1&Param2=value2", "",
	       "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500", HOST),
	VECTOR("POST", "/", "Param1=value1", "",
	       "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11", HOST),
	VECTOR("GET", "/", "%E1%88%B4=bar", "",
	       "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04", HOST),
	VECTOR("GET", "/" LETTERS, "", "",
	       "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f", HOST),
	VECTOR("GET", "/\xe1\x88\xb4", "", "",
	       "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85", HOST),
	VECTOR("GET", "/", "", "",
	       "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736", HOST,
	       "My-Header1", " value1", "My-Header2", " \"a   b   c\""),
	VECTOR("GET", "/", "", "",
	       "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01", HOST,
	       "My-Header1", "value4,value1,value3,value2"),
	VECTOR("POST", "/", "", "",
	       "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d", "My-Header1",
	       "VALUE1", HOST),
	VECTOR("POST", "/", "", "",
	       "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead", HOST,
	       "X-Amz-Security-Token", TOKEN),
	VECTOR("POST", "/", "", "Param1=value1",
	       "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a", "Content-Type",
	       "application/x-www-form-urlencoded", HOST),
};

TEST(suite_of_tests)
{
	for (size_t i = 0; i < sizeof(all_of_suite) / sizeof(*all_of_suite); i++)
		CHECK_STR(signature(&suite, SUITE, &all_of_suite[i]), all_of_suite[i].signature);
}

TEST(the_header)
{
	const struct fusee_label labels[] = {fusee_text_label("X-Amz-Date", SUITE),
					     fusee_text_label("Host", "example.amazonaws.com")};
	struct sigv4_request q = {"GET", "/", "", FUSEE_TABLE(labels), EMPTY};
	char value[SIGV4_AUTHORIZATION], id[SIGV4_AUTHORIZATION];
	struct fusee_label many[SIGV4_HEADERS + 1];
	struct sigv4_key key = suite;

	CHECK_INT(sigv4_authorize(value, &key, &q, SUITE), 0);
	CHECK_STR(value, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/"
			 "aws4_request, SignedHeaders=host;x-amz-date, "
			 "Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf3"
			 "1");
	/* nothing is truncated */
	for (size_t n = 1; n < sizeof(id); n++) {
		memset(id, 'A', n);
		id[n] = '\0';
		key.id = id;
		if (sigv4_authorize(value, &key, &q, SUITE))
			break;
		CHECK_STR(strstr(value, "Signature=") + 10 + 60, "bf31");
		CHECK(strlen(value) < sizeof(value));
	}
	CHECK(strlen(id) > 700 && strlen(id) < sizeof(id) - 1);
	key = suite;
	for (size_t i = 0; i < sizeof(many) / sizeof(*many); i++)
		many[i] = labels[1];
	q.headers = (struct fusee_table)FUSEE_TABLE(many);
	CHECK_INT(sigv4_authorize(value, &key, &q, SUITE), -EINVAL);
	q.headers.n = 1;
	memset(id, 'x', sizeof(id) - 1);
	id[sizeof(id) - 1] = '\0';
	key.secret = id;
	CHECK_INT(sigv4_authorize(value, &key, &q, SUITE), -EINVAL);
}

TEST(encodes)
{
	char to[32];

	CHECK_INT(sigv4_encode(to, sizeof(to), fusee_text("date=2026-11-21/a b"), "/"), 23);
	CHECK_STR(to, "date%3D2026-11-21/a%20b");
	CHECK_INT(sigv4_encode(to, sizeof(to), fusee_text("a/b+c*"), ""), 12);
	CHECK_STR(to, "a%2Fb%2Bc%2A");
	CHECK_INT(sigv4_encode(to, sizeof(to), (struct fusee_str){"\0\xff", 2}, "/"), 6);
	CHECK_STR(to, "%00%FF");
	CHECK_INT(sigv4_encode(to, sizeof(to), fusee_text(""), "/"), 0);
	CHECK_STR(to, "");
	for (size_t size = 0; size < 13; size++)
		CHECK_INT(sigv4_encode(to, size, fusee_text("////"), ""), -E2BIG);
}

TEST(times)
{
	char text[SIGV4_TIME];

	sigv4_time(text, 1440938160);
	CHECK_STR(text, SUITE);
	sigv4_time(text, 0);
	CHECK_STR(text, "19700101T000000Z");
}
