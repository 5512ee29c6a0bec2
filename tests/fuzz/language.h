/* SPDX-License-Identifier: Apache-2.0 */
/* A file and a process that consist of the fuzzer's bytes, for unwinders of languages. Before it is
 * included, LANGUAGE_WORDS is the number of words of the unwinder's table. */
#ifndef FUZZ_LANGUAGE_H
#define FUZZ_LANGUAGE_H

#include <fusee/plugin.h>
#include <fusee/unwinder.bpf.h>

#include "fuzz.h"

#define BASE 0x1000u /* vaddr of the first byte */
#define TURNS 100    /* most calls of the step at one place, as lying memory has many frames */
#define IDLE 64      /* calls in a row that push nothing, at which the core ends the stack */

static const uint8_t *bytes;
static size_t nbytes;
static uint32_t slab[LANGUAGE_WORDS], nslab;

/* ---- the file ---- */

static uint32_t hash(const char *name)
{
	uint32_t h = 5381;

	while (*name)
		h = h * 33 + (unsigned char)*name++;
	return h;
}

static int file_read(uint64_t file, uint64_t vaddr, void *buf, uint32_t len)
{
	(void)file;
	if (vaddr < BASE || vaddr - BASE > nbytes || len > nbytes - (vaddr - BASE))
		return -ENOENT;
	memcpy(buf, bytes + (vaddr - BASE), len);
	return 0;
}

/* Functions are 256 bytes, but for those whose first byte says more. */
static int file_function(uint64_t file, uint64_t vaddr, struct fusee_range *at)
{
	uint64_t lo = vaddr & ~255ull;

	(void)file;
	if (lo < BASE || lo - BASE >= nbytes)
		return -ENOENT;
	*at = (struct fusee_range){lo, lo + 256 + (bytes[lo - BASE] & 15) * 4096ull};
	return 0;
}

/* A name's symbol is where the hash of the name says, if the byte there is not 0. */
static int file_symbol(uint64_t file, const char *name, struct fusee_range *at)
{
	uint64_t i = nbytes ? hash(name) % nbytes : 0;

	if (!nbytes || !bytes[i])
		return -ENOENT;
	return file_function(file, BASE + i, at);
}

static int file_section(uint64_t file, const char *name, struct fusee_section *s)
{
	(void)file;
	(void)name;
	s->vaddr = BASE;
	s->bytes = (struct fusee_str){(const char *)bytes, nbytes};
	return 0;
}

static int file_info(uint64_t file, struct fusee_file_info *info)
{
	(void)file;
	info->machine = 62;
	return 0;
}

static int file_slab(struct fusee_instance *in, uint64_t file, const uint32_t *words, uint64_t n)
{
	(void)in;
	(void)file;
	if (n > LANGUAGE_WORDS || nslab)
		abort();
	memcpy(slab, words, n * sizeof(*words));
	nslab = (uint32_t)n;
	return 0;
}

static int file_claim(struct fusee_instance *in, uint64_t file, const struct fusee_claim *c)
{
	(void)in;
	(void)file;
	if (c->range.lo >= c->range.hi || c->range.lo < BASE)
		abort();
	return 0;
}

static int fail(struct fusee_instance *in, int err, const char *text)
{
	(void)in;
	if (err >= 0 || !*text)
		abort();
	return err;
}

/* ---- the process ---- */

static int process_read(struct fusee_native *n, void *to, uint32_t len, uint64_t addr)
{
	(void)n;
	if (!nbytes || addr % 4096 > 4000) /* a page that cannot be read */
		return -1;
	for (uint32_t i = 0; i < len; i++)
		((uint8_t *)to)[i] = bytes[(addr + i) % nbytes];
	return 0;
}

/* What the unwinder's half does with what its step emits, and with a frame; one walk of its step.
 */
static void keep(uint32_t kind, uint64_t key, const void *at, uint32_t len);
static void symbolize(uint64_t key, uint64_t what);
static void walk(struct fusee_native *n);

static int record(struct fusee_native *n, uint32_t kind, uint64_t key, const void *at, uint32_t len)
{
	uint8_t *copy = malloc(len ? len : 1); /* so that a read behind the end is seen */

	(void)n;
	memcpy(copy, at, len);
	keep(kind, key, copy, len);
	free(copy);
	return 0;
}

/* The bytes as an emission, and some keys. */
FUZZ void record_bytes(uint32_t kinds)
{
	if (nbytes >= 8)
		record(NULL, bytes[0] & kinds, bytes[1] & 7, bytes + 2,
		       (uint32_t)(nbytes - 2 > FUSEE_EMIT_BYTES ? FUSEE_EMIT_BYTES : nbytes - 2));
	for (uint64_t key = 0; key < 8; key++)
		symbolize(key, key);
}

/* By a step that pushes one frame at a time; lying memory has any number of them. */
FUZZ void walk_by(int (*step)(struct fusee_unwind *u), struct fusee_native *n)
{
	int turns = 0, idle = 0, next;

	do {
		next = step(&n->u);
		idle = n->u.npushed ? 0 : idle + 1;
		if (n->u.npushed)
			symbolize(n->u.pushed[0], n->u.pushed[1]);
		n->u.npushed = 0;
		if (next < FUSEE_STOP || next > FUSEE_NATIVE_TOO)
			abort();
	} while (next == FUSEE_AGAIN && idle < IDLE && ++turns < TURNS);
}

/* A new input; a table that inspect() did not make consists of its bytes. */
FUZZ void begin_input(const uint8_t *data, size_t size)
{
	bytes = data;
	nbytes = size;
	nslab = 0;
}

FUZZ void table_of_bytes(void)
{
	if (nslab)
		return;
	memset(slab, 0, sizeof(slab));
	memcpy(slab, bytes, nbytes < sizeof(slab) ? nbytes : sizeof(slab));
	nslab = LANGUAGE_WORDS;
}

static void steps(void)
{
	static struct fusee_native n;
	uint64_t at[4] = {0};

	memcpy(at, bytes, nbytes < sizeof(at) ? nbytes : sizeof(at));
	for (uint32_t arg = 0; arg < 6; arg++) {
		memset(&n, 0, sizeof(n));
		n.read = process_read;
		n.emit = record;
		n.slab = slab;
		n.u.slab_words = nslab;
		n.u.process = 1;
		n.u.pc = BASE + at[0] % 65536;
		n.u.offset = n.u.pc;
		n.u.sp = n.u.first_sp = at[1];
		n.u.fp = at[2];
		n.u.tls = at[3];
		n.u.claim_arg = arg;
		n.u.flags = FUSEE_PC_EXACT | FUSEE_FIRST;
		n.u.valid_regs = 0xffff;
		for (int r = 0; r < 16; r++)
			n.u.regs[r] = at[r & 3] * (uint64_t)(r + 1);
		for (int frame = 0; frame < 2; frame++) {
			walk(&n);
			n.u.sp += 64;
			n.u.flags = 0;
		}
	}
}

static const struct fusee_unwinder_host unwinder = {.size = sizeof(unwinder),
						    .file_info = file_info,
						    .file_section = file_section,
						    .file_read = file_read,
						    .file_symbol = file_symbol,
						    .file_function = file_function,
						    .file_slab = file_slab,
						    .file_claim = file_claim};
static const struct fusee_host host = {.size = sizeof(host), .fail = fail, .unwinder = &unwinder};
#endif
