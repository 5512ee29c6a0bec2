/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of any bytes, one behind the other, against Zydis: what it decodes our decoder must
 * decode too, with the same length, effect and target. */
// sources: plugins/lib/insn/insn.c plugins/lib/insn/effect.c
//
// needs: /usr/include/Zydis/Zydis.h libzydis-dev
//
// libs: -lZydis
#include "fuzz.h"

#include "../accuracy/insn_oracle.h"

static void check(const ZydisDecoder *oracle, const uint8_t *p, size_t n, struct insn *ours)
{
	struct oracle_insn o;
	struct insn theirs;
	int err = fusee_insn_decode(p, n, ours);
	int oracle_err = oracle_decode(oracle, p, n, &o, &theirs);
	enum oracle_verdict v = oracle_compare(ours, err, &theirs, oracle_err);

	if (err)
		ours->len = oracle_err ? 1 : theirs.len;
	if (v == ORACLE_AGREES || v == ORACLE_ACCEPTED)
		return;
	fprintf(stderr, "%s: length %d, effect %d, value %d, target %ld | %d %d %d %ld\n  ",
		ZydisMnemonicGetString(o.insn.mnemonic), ours->len, ours->effect, ours->value,
		(long)ours->target, theirs.len, theirs.effect, theirs.value, (long)theirs.target);
	for (size_t i = 0; i < theirs.len; i++)
		fprintf(stderr, " %02x", p[i]);
	fprintf(stderr, "\n");
	if (!getenv("FUSEE_FUZZ_GO_ON"))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	ZydisDecoder oracle;
	struct insn in;

	if (!ZYAN_SUCCESS(
		    ZydisDecoderInit(&oracle, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
		abort();
	for (size_t at = 0; at < len; at += in.len) {
		size_t n = len - at < 20 ? len - at : 20;
		uint8_t *copy = malloc(n); /* so that a byte too many is seen */

		if (!copy)
			return 0;
		memcpy(copy, data + at, n);
		check(&oracle, copy, n, &in);
		free(copy);
	}
	return 0;
}
