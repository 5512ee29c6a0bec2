// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/base

#include "base/sha256.h"
#include "test.h"

/* Both ways, which must agree. */
static const char *hex(const void *p, size_t len, size_t piece)
{
	static char text[65];
	uint8_t digests[2][32];
	struct sha256 h;

	for (int portably = 0; portably < 2; portably++) {
		sha256_init(&h);
		h.by_cpu &= !portably;
		for (size_t i = 0; i < len; i += piece)
			sha256_add(&h, (const char *)p + i, len - i < piece ? len - i : piece);
		sha256_end(&h, digests[portably]);
	}
	CHECK(!memcmp(digests[0], digests[1], 32));
	for (int i = 0; i < 32; i++)
		sprintf(text + 2 * i, "%02x", digests[0][i]);
	return text;
}

TEST(vectors_of_the_standard)
{
	CHECK_STR(hex("", 0, 1),
		  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	CHECK_STR(hex("abc", 3, 3),
		  "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	CHECK_STR(hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, 5),
		  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

/* Each length around the block's borders, in pieces of several sizes, as sha256sum(1) has it. */
TEST(as_sha256sum)
{
	static char text[200];

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)('a' + i % 26);
	for (size_t len = 50; len < 135; len++) {
		char command[300], theirs[65] = "";
		FILE *f;

		snprintf(command, sizeof(command), "printf %%s %.*s | sha256sum", (int)len, text);
		f = popen(command, "r");
		CHECK(f && fgets(theirs, sizeof(theirs), f));
		pclose(f);
		for (size_t piece = 1; piece < 140; piece += 21)
			CHECK_STR(hex(text, len, piece), theirs);
	}
}
